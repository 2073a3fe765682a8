package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := a.version()
			return a.showValue(v, []string{v.Version}, func(w io.Writer) {
				line := "taskhost " + v.Version
				if v.Commit != "" {
					line += " (" + v.Commit + ")"
				}
				fmt.Fprintf(w, "%s %s\n", line, v.Go)
			})
		},
	}
}
