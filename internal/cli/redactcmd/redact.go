// Package redactcmd has the command that shows what a host redacts in a text.
package redactcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor"
	"waybill.dev/waybill/services/redactor/redact"
)

// Command is `waybill redact`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "redact", Short: "Test redaction of texts and documents"}
	c.AddCommand(redactTestCommand(s))
	return c
}

// Values of --as.
const (
	asAuto = "auto"
	asJSON = "json"
	asText = "text"
)

// redactOptions are the flags of `waybill redact test`, with the names of the host's flags.
type redactOptions struct {
	secretsFile, as string
	shapes          bool
}

func redactTestCommand(s *session.Session) *cobra.Command {
	var o redactOptions
	c := &cobra.Command{
		Use:   "test FILE|-",
		Short: "Show what a host would redact in a text or JSON document",
		Long: `Redacts a file or standard input as a host does before recording, and prints each rule that
matched with its place in the redacted output. A rule is the id of a registered secret, or the
shape of text that looks like a secret. The registered secrets are those of --secrets-file and the
provider keys in the environment. Secrets that tenants and runs register on a host are not used.

In JSON, member names such as "password" mark their values as secret. Nothing is sent to a host, and
redacted text is never printed.

Exit status: 0 nothing redacted; 1 something redacted.`,
		Example: `  waybill redact test mail.txt
  kubectl logs my-agent | waybill redact test - -o json | jq .finds
  waybill redact test --secrets-file secrets.yaml --as json payload.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			scrubber, err := o.scrubber()
			if err != nil {
				return err
			}
			doc, err := document.Read(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			r, err := redacted(scrubber, doc, o.as)
			if err != nil {
				return err
			}
			if len(r.Finds) == 0 && p.Format.ForPeople() {
				session.Notice(cmd, "nothing would be redacted")
			}
			return r.write(p)
		},
	}
	f := c.Flags()
	f.StringVar(&o.secretsFile, "secrets-file", "", "YAML file of secret ids and values, as for a host")
	f.BoolVar(&o.shapes, "redact-shapes", true, "also redact unregistered text that looks like a secret")
	f.StringVar(&o.as, "as", asAuto, "json, text or auto; auto reads objects and arrays as JSON")
	s.OutputFlags(f)
	return c
}

// scrubber returns the scrubber of a host with these settings.
func (o *redactOptions) scrubber() (*redact.Scrubber, error) {
	if !slices.Contains([]string{asAuto, asJSON, asText}, o.as) {
		return nil, exit.Usagef("--as %q: want %s, %s or %s", o.as, asAuto, asJSON, asText)
	}
	known, err := hostfile.ReadSecrets(o.secretsFile)
	if err != nil {
		return nil, exit.Usagef("--secrets-file: %w", err)
	}
	models := models.Options{SecretsOnly: true}
	if err := models.CheckKeys(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	scrubber := redact.Compile(slices.Concat(models.Secrets(), known))
	if o.shapes {
		scrubber = scrubber.With(redact.DefaultShapes())
	}
	return scrubber, nil
}

// redaction is the redacted document and the matches.
type redaction struct {
	Format string `json:"format"`
	Taken  int    `json:"taken"`
	Finds  []find `json:"finds"`
	// Redacted is the document, or the text as a JSON string.
	Redacted json.RawMessage `json:"redacted"`
}

// find counts the matches of one rule at one place.
type find struct {
	Rule string `json:"rule"`
	// Layer is known for a registered secret, shape for text that looks like one.
	Layer string `json:"layer"`
	// Place is a JSON pointer, or a line and column.
	Place string `json:"place"`
	Times int    `json:"times"`
}

func redacted(s *redact.Scrubber, doc []byte, as string) (*redaction, error) {
	if trimmed := bytes.TrimSpace(doc); as == asAuto {
		as = asText
		if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) {
			as = asJSON
		}
	}
	r := &redaction{Format: as, Finds: []find{}}
	if as == asText {
		text, n := s.Text(string(doc))
		r.Taken, r.Redacted = n, strictjson.Render(text)
		r.inText(string(doc), text)
		return r, nil
	}
	cfg := redactor.DefaultConfig()
	out, n, err := s.JSON(doc, strictjson.Limits{MaxBytes: cfg.MaxBytes, MaxDepth: cfg.MaxDepth})
	if wrong, ok := errors.AsType[*strictjson.Error](err); ok {
		return nil, exit.Usagef("byte %d: %s", wrong.Offset, wrong.Reason) // without the path: member names may be secret
	}
	if err != nil {
		return nil, err
	}
	r.Taken, r.Redacted = n, out
	before, after := json.NewDecoder(bytes.NewReader(doc)), json.NewDecoder(bytes.NewReader(out))
	before.UseNumber()
	after.UseNumber()
	return r, r.inJSON(before, after, "")
}

// markers matches the replacements of secrets.
var markers = regexp.MustCompile(`\[REDACTED:([^\[\]]+)\]`)

// shapeIDs is the prefix of rule ids of the layer shape.
const shapeIDs = "shape."

// added calls each for every marker that redaction added to a text.
func added(before, after string, each func(rule string, at int)) {
	there := map[string]int{}
	for _, m := range markers.FindAllStringSubmatch(before, -1) {
		there[m[1]]++
	}
	for _, m := range markers.FindAllStringSubmatchIndex(after, -1) {
		rule := after[m[2]:m[3]]
		if there[rule] > 0 {
			there[rule]--
			continue
		}
		each(rule, m[0])
	}
}

func (r *redaction) note(rule, place string) {
	if last := len(r.Finds) - 1; last >= 0 && r.Finds[last].Rule == rule && r.Finds[last].Place == place {
		r.Finds[last].Times++
		return
	}
	layer := "known"
	if strings.HasPrefix(rule, shapeIDs) {
		layer = "shape"
	}
	r.Finds = append(r.Finds, find{Rule: rule, Layer: layer, Place: place, Times: 1})
}

func (r *redaction) inText(before, after string) {
	added(before, after, func(rule string, at int) {
		line := strings.Count(after[:at], "\n") + 1
		column := len([]rune(after[strings.LastIndexByte(after[:at], '\n')+1:at])) + 1
		r.note(rule, fmt.Sprintf("line %d, column %d", line, column))
	})
}

// inJSON walks a document and its redacted copy, which have the same structure. Pointers are those
// of the redacted copy, because a name may be a secret, too.
func (r *redaction) inJSON(before, after *json.Decoder, at string) error {
	old, new, err := step(before, after)
	if err != nil {
		return err
	}
	switch kind := new.(type) {
	case string:
		was, _ := old.(string)
		added(was, kind, func(rule string, _ int) { r.note(rule, at) })
	case json.Delim:
		for i := 0; after.More(); i++ {
			child := at + "/" + strconv.Itoa(i)
			if kind == '{' {
				was, is, err := step(before, after)
				if err != nil {
					return err
				}
				name := fmt.Sprint(is)
				child = at + "/" + jsonpointer.Escape(name)
				added(fmt.Sprint(was), name, func(rule string, _ int) { r.note(rule, child+" (the name)") })
			}
			if err := r.inJSON(before, after, child); err != nil {
				return err
			}
		}
		_, _, err = step(before, after)
	}
	return err
}

func step(before, after *json.Decoder) (old, new json.Token, err error) {
	old, err1 := before.Token()
	new, err2 := after.Token()
	return old, new, errors.Join(err1, err2)
}

func (r *redaction) write(p *render.Printer) error {
	doc, err := render.Encode(r)
	if err != nil {
		return err
	}
	row := func(f find) []byte { return strictjson.Render(f) }
	err = render.Rows(p, doc, r.Finds, row, func(f find) string { return f.Rule }, []render.Column[find]{
		{Name: "RULE", Value: func(f find) string { return f.Rule }},
		{Name: "LAYER", Value: func(f find) string { return f.Layer }},
		{Name: "PLACE", Flex: true, Value: func(f find) string { return f.Place }},
		{Name: "TIMES", Value: func(f find) string { return strconv.Itoa(f.Times) }},
	})
	if err == nil && p.Query == nil && p.Format.ForPeople() {
		err = r.left(p.Out)
	}
	if err != nil || r.Taken == 0 {
		return err
	}
	return exit.Outcome(exit.Failed, "something was redacted")
}

// left prints the redacted document.
func (r *redaction) left(w io.Writer) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if r.Format == asJSON {
		return render.WriteJSON(w, r.Redacted)
	}
	text, _ := strictjson.String(r.Redacted)
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(w, term.Clean(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}
