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

// testNext is the command that tests the project in dir. A program that is named relative to the present folder is not found
// from within the project.
func testNext(self, dir string) string {
	if self == "taskhost" || filepath.IsAbs(self) {
		return fmt.Sprintf("cd %s && %s handler test", dir, self)
	}
	return fmt.Sprintf("%s handler test %s", self, dir)
}

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
			a.say("next: %s", testNext(self(), dir))
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
