// Package scaffold has the commands that write the first files of an author: a folder, a workflow, an
// envelope kind.
package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/pack"
)

// defaultHost serves the schemas for editors while `waybill dev` runs.
const defaultHost = "http://127.0.0.1:8080"

var workflowID = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,127}$`)

// file is a file to write, by its path from the folder.
type file struct{ path, text string }

// workflowText is a workflow of two nodes with a variable, an input port and an edge. JSON has no
// comments: notes and descriptions explain it.
func workflowText(id, kind, host string) string {
	answer, contract, summary := "", "", "string"
	if kind != "" {
		answer = "\n        \"envelopeType\": \"" + kind + "\","
		contract = ",\n      \"envelopeContract\": { \"accepts\": [\"" + kind + "\"] }"
		summary = "object"
	}
	return `{
  "$schema": "` + strings.TrimSuffix(host, "/") + `/schemas/workflow.schema.json",
  "id": "` + id + `",
  "name": "` + title(id) + `",
  "description": "Summarises a text. Run it: waybill run start ` + id + ` --set text='...' --wait",
  "version": "1.0.0",
  "nodes": [
    {
      "id": "ask",
      "typeId": "core.ai.callPrompt",
      "name": "Ask the model",
      "notes": "{{text}} is replaced by the port text. Without provider and model, the host's default model is called.",
      "config": {` + answer + `
        "prompt": "Summarise this text:\n\n{{text}}",
        "maxTokens": 400
      },
      "inputs": { "text": { "type": "variable", "variableName": "text" } }` + contract + `
    },
    {
      "id": "keep",
      "typeId": "core.setVariable",
      "name": "Keep the summary",
      "notes": "Starts when ask has completed. The edge passes the output of ask to the port value.",
      "config": { "name": "summary" }
    }
  ],
  "edges": [
    { "id": "ask-keep", "sourceNodeId": "ask", "sourceOutput": "output", "targetNodeId": "keep", "targetInput": "value" }
  ],
  "variables": [
    { "name": "text", "type": "string", "required": true, "description": "Text to summarise; an input of each run." },
    { "name": "summary", "type": "` + summary + `", "description": "Set by the node keep; an output of each run." }
  ]
}
`
}

// kindText is the schema of an envelope kind, within the subset that all vendors enforce.
func kindText(name string) string {
	return `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "` + name + `",
  "description": "Payload of the kind ` + name + `. Models read the descriptions: say what each member means.",
  "x-schemaVersion": 1,
  "type": "object",
  "additionalProperties": false,
  "required": ["title", "summary", "tags"],
  "properties": {
    "title": { "type": "string", "description": "Title of at most ten words." },
    "summary": { "type": "string", "description": "Summary in two sentences." },
    "tags": { "type": "array", "items": { "type": "string" }, "description": "Up to five topics." }
  }
}
`
}

// editorText are the settings that give files their schemas in Visual Studio Code.
func editorText(host string) string {
	at := strings.TrimSuffix(host, "/") + "/schemas/"
	return `{
  "json.schemas": [
    { "fileMatch": ["/workflows/*.json"], "url": "` + at + `workflow.schema.json" },
    { "fileMatch": ["/kinds/*.schema.json"], "url": "` + at + `kind.schema.json" },
    { "fileMatch": ["/prompts/*.json"], "url": "` + at + `prompt-template.schema.json" },
    { "fileMatch": ["/packs/*/pack.json"], "url": "` + at + `pack.schema.json" },
    { "fileMatch": ["/packs/*/waybill.json"], "url": "` + at + `pack-waybill.schema.json" },
    { "fileMatch": ["provider-settings.json", "providers.json"], "url": "` + at + `provider-settings.schema.json" },
    { "fileMatch": ["provider-policies.json", "policies.json"], "url": "` + at + `provider-policies.schema.json" }
  ]
}
`
}

// title is an id as a name for people.
func title(id string) string {
	words := strings.NewReplacer("-", " ", "_", " ").Replace(id)
	return strings.ToUpper(words[:1]) + words[1:]
}

// write writes files that do not exist. It writes none if one exists, unless existing ones are kept.
func write(cmd *cobra.Command, dir string, keep bool, files ...file) error {
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, f.path)); err == nil && !keep {
			return exit.Usagef("%s exists already; remove it, or give another name", filepath.Join(dir, f.path))
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: files of the author
			return exit.With(exit.Usage, err)
		}
		switch err := create(path, f.text); {
		case errors.Is(err, fs.ErrExist):
			fmt.Fprintf(cmd.ErrOrStderr(), "%s exists already and stays\n", term.Clean(path))
		case err != nil:
			return exit.With(exit.Usage, err)
		default:
			fmt.Fprintln(cmd.OutOrStdout(), term.Clean(path))
		}
	}
	return nil
}

func create(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // G302, G304: a file that the author names
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func checkHost(host string) error {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(host, "\"\\") {
		return exit.Usagef("--schemas %q: want the URL of a host, such as %s", host, defaultHost)
	}
	return nil
}

func checkKind(name string) error {
	if !pack.VendorKind(name) {
		return exit.Usagef("%q: want a kind of the form vendor.<host>.<kind>, such as vendor.acme.note", name)
	}
	return nil
}

func checkID(id string) error {
	if !workflowID.MatchString(id) {
		return exit.Usagef("%q: want small letters, digits, - and _, beginning with a letter, 128 at most", id)
	}
	return nil
}
