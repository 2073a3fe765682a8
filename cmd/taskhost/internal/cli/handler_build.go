package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func (a *App) handlerBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build the module of a handler project",
		Args:  args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			p, err := openProject(firstArg(args, "."))
			if err != nil {
				return err
			}
			if err := p.build(ctx, a.Err); err != nil {
				return err
			}
			info, err := os.Stat(p.module())
			if err != nil {
				return err
			}
			return a.showValue(map[string]any{"type": p.Type, "module": p.module(), "size_bytes": info.Size()}, []string{p.module()}, func(w io.Writer) {
				fmt.Fprintf(w, "%s  %s\n", p.module(), bytesText(info.Size()))
			})
		},
	}
}

func firstArg(args []string, fallback string) string {
	if len(args) > 0 {
		return args[0]
	}
	return fallback
}
