package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func yesNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func (a *App) handlerInspectCommand() *cobra.Command {
	var f localFlags
	cmd := &cobra.Command{
		Use:   "inspect FILE|DIR",
		Short: "Check a module as an upload would, and say what it is",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			module, typ, err := a.loadModule(ctx, args[0])
			if err != nil {
				return err
			}
			o, err := f.options(firstOf(typ, "local"))
			if err != nil {
				return err
			}
			l, err := a.openLocal(ctx, module, o)
			if err != nil {
				return err
			}
			defer l.Close()
			ad := l.Admission()
			view := map[string]any{
				"sha256": ad.SHA256, "size_bytes": ad.SizeBytes, "kind": ad.Kind, "imports": ad.Imports, "memory": ad.Memory,
				"instance": ad.Instance, "compile_ms": ad.CompileTime.Milliseconds(), "warnings": ad.Warnings,
				"exports": ad.Exports, "features": ad.Features, "metered": ad.Metered, "source_lines": ad.SourceLines,
			}
			return a.showValue(view, []string{ad.SHA256}, func(w io.Writer) {
				row(w, "sha256", ad.SHA256)
				row(w, "size", bytesText(int64(ad.SizeBytes)))
				row(w, "kind", ad.Kind)
				row(w, "memory", fmt.Sprintf("%s to %s", bytesText(ad.Memory.MinBytes), bytesText(ad.Memory.MaxBytes)))
				row(w, "instance", fmt.Sprintf("%s (%s)", ad.Instance.Mode, ad.Instance.Reason))
				row(w, "compiled in", fmt.Sprintf("%d ms", ad.CompileTime.Milliseconds()))
				row(w, "metered", yesNo(ad.Metered, "fuel is counted, and every job can be stopped", "no"))
				row(w, "traps", yesNo(ad.SourceLines, "name functions and source lines", "name functions, if the module names them; it has no line information"))
				row(w, "features", cmp.Or(strings.Join(ad.Features, ", "), "none beyond the first version"))
				for _, i := range ad.Imports {
					row(w, "imports", i)
				}
				for _, e := range ad.Exports {
					row(w, "exports", e)
				}
				for _, warning := range ad.Warnings {
					row(w, "warning", warning)
				}
			})
		},
	}
	f.registerMemory(cmd)
	return cmd
}
