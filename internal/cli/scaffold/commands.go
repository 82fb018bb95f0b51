package scaffold

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func hostFlag(f *pflag.FlagSet, host *string) {
	f.StringVar(host, "schemas", defaultHost, "URL of the host that serves the schemas for editors")
}

// Init is `waybill init`.
func Init() *cobra.Command {
	var host string
	c := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write a first workflow, an envelope kind and the settings of an editor",
		Long: `Writes workflows/summarise.json, kinds/vendor.example.summary.schema.json and
.vscode/settings.json, which gives Visual Studio Code the schemas of all files. Existing files stay.
The schemas are served by the host at --schemas.`,
		Example: `  waybill init
  waybill init my-workflows`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkHost(host); err != nil {
				return err
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			const id, kind = "summarise", "vendor.example.summary"
			err := write(cmd, dir, true,
				file{filepath.Join("workflows", id+".json"), workflowText(id, kind, host)},
				file{filepath.Join("kinds", kind+".schema.json"), kindText(kind)},
				file{filepath.Join(".vscode", "settings.json"), editorText(host)})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), `
Next, in two terminals:

  waybill dev --workflows %[1]s --kinds %[2]s
  waybill run start %[3]s --set text='The quick brown fox jumps over the lazy dog.' --wait
`, filepath.Join(dir, "workflows"), filepath.Join(dir, "kinds"), id)
			return err
		},
	}
	hostFlag(c.Flags(), &host)
	return c
}

// Workflow is `waybill workflow new`.
func Workflow() *cobra.Command {
	var host, dir, kind string
	c := &cobra.Command{
		Use:   "new ID",
		Short: "Write a new workflow definition",
		Long: `Writes a small workflow to ID.json: a variable, a node that calls a model with it, and an edge that
passes the answer to a second node. --kind makes the model answer with an envelope of a kind. An
existing file is not overwritten.`,
		Example: `  waybill workflow new summarise --dir workflows
  waybill workflow new triage --kind vendor.acme.ticket`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkID(args[0]); err != nil {
				return err
			}
			if err := checkHost(host); err != nil {
				return err
			}
			if kind != "" {
				if err := checkKind(kind); err != nil {
					return err
				}
			}
			return write(cmd, dir, false, file{args[0] + ".json", workflowText(args[0], kind, host)})
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "folder of the file")
	c.Flags().StringVar(&kind, "kind", "", "envelope kind of the answer")
	hostFlag(c.Flags(), &host)
	return c
}

// Kind is `waybill kind new`.
func Kind() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "new KIND",
		Short: "Write the schema of a new envelope kind",
		Long: `Writes a small JSON Schema to KIND.schema.json, in the form that models of all vendors are held to.
` + "`schema lint`" + ` checks it after changes. An existing file is not overwritten.`,
		Example: `  waybill kind new vendor.acme.ticket --dir kinds`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkKind(args[0]); err != nil {
				return err
			}
			return write(cmd, dir, false, file{args[0] + ".schema.json", kindText(args[0])})
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "folder of the file")
	return c
}
