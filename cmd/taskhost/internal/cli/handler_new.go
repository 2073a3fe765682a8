package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/scaffold"
)

func (a *App) handlerNewCommand() *cobra.Command {
	var lang, dir string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Start a handler project",
		Long:  "Start a handler project in a new folder. NAME is the task type it will serve. It builds without network.",
		Args:  args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`).MatchString(name) {
				return usagef("NAME must be 1–128 of A-Z a-z 0-9 . _ - and begin with a letter or digit, got %q", name)
			}
			if dir == "" {
				dir = name
			}
			files, err := scaffold.Create(dir, name, lang)
			if err != nil {
				return usagef("%w", err)
			}
			a.say("created in %s: %s (builds offline)", filepath.ToSlash(dir), strings.Join(files, " "))
			a.say("next: cd %s && %s handler test", dir, self())
			return a.showValue(map[string]any{"dir": dir, "type": name, "lang": lang, "files": files}, []string{dir}, func(w io.Writer) {
				fmt.Fprintln(w, dir)
			})
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "go", "language: "+strings.Join(scaffold.Languages(), ", "))
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write to (default: NAME)")
	complete(cmd, "lang", scaffold.Languages()...)
	return cmd
}
