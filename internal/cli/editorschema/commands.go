package editorschema

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Show is `waybill schema show`.
func Show() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the JSON Schema of workflow files, for editors",
		Long: `Prints the JSON Schema of workflow files. With --packs it has the configs of the packs' node types, too.
A host serves the schema without packs at /schemas/workflow.schema.json.`,
		Example: `  waybill schema show --packs packs > workflow.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := packs.Load(dir, pack.Host{Any: true}, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			doc, err := Workflow(node.Builtin().And(node.PeerTypes()...).With(loaded))
			if err == nil {
				doc, err = render("workflow.schema.json", doc)
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(doc)
			return err
		},
	}
	c.Flags().StringVar(&dir, "packs", "", "folder of packs")
	return c
}

// References are the commands that write generated files of the repository.
func References() []*cobra.Command {
	return []*cobra.Command{{
		Use:   "schemas DIR",
		Short: "Write the JSON Schemas of files to a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := All()
			if err != nil {
				return err
			}
			for _, name := range Names(all) {
				path := filepath.Join(args[0], filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: schemas are public
					return exit.With(exit.Usage, err)
				}
				if err := os.WriteFile(path, all[name], 0o644); err != nil { //nolint:gosec // G306: schemas are public
					return exit.With(exit.Usage, err)
				}
			}
			return nil
		},
	}, {
		Use:   "configs",
		Short: "Write the page of docs/reference/node-config.md to standard output",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page, err := ConfigPage()
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), page)
			}
			return err
		},
	}}
}
