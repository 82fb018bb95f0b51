package hostfile

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// ReadSecrets reads a YAML file of secret ids and values; none if file is empty.
// Errors have line numbers but no ids or values, because an id may contain a secret. A file that
// other users can read is rejected.
func ReadSecrets(file string) ([]redact.Secret, error) {
	if file == "" {
		return nil, nil
	}
	b, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, WithoutPath(err))
	}
	out, found := ParseSecrets(b)
	var errs []error
	for _, p := range found {
		place := file
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", file, p.Line)
		}
		errs = append(errs, fmt.Errorf("%s: %s", place, p.Message))
	}
	return out, errors.Join(errs...)
}

//go:embed secrets.schema.json
var secretsSchema []byte

// SecretsSchema is the JSON Schema of the file.
func SecretsSchema() []byte { return secretsSchema }

// ParseSecrets reads a document of secret ids and values. Its mistakes have places, and neither ids nor
// values.
func ParseSecrets(b []byte) (out []redact.Secret, found strictjson.Problems) {
	var (
		values map[string]string
		doc    yaml.Node
	)
	if yaml.Unmarshal(b, &values) != nil || yaml.Unmarshal(b, &doc) != nil { // the parser's error quotes the file
		return nil, strictjson.Problems{{Message: "want lines of the form id: value"}}
	}
	lines := LinesOf(&doc)
	for _, id := range slices.Sorted(maps.Keys(values)) {
		wrong := func(message string) { // an id that is merged from elsewhere in the file has no place
			found = append(found, strictjson.Problem{Message: message, Position: strictjson.Position{Line: lines[id], Column: min(lines[id], 1)}})
		}
		s := redact.Secret{ID: id, Value: redact.Value(values[id])}
		if err := s.Validate(); err != nil {
			wrong(err.Error())
		}
		if len(s.Value) < redact.MinLength {
			wrong(fmt.Sprintf("secret is shorter than %d bytes and cannot be redacted reliably", redact.MinLength))
		}
		out = append(out, s)
	}
	return out, found
}

// LinesOf maps the members of a document to their line numbers.
func LinesOf(doc *yaml.Node) map[string]int {
	lines := map[string]int{}
	for _, m := range doc.Content {
		for i := 0; i+1 < len(m.Content); i += 2 {
			id := m.Content[i].Value
			if alias := m.Content[i].Alias; alias != nil {
				id = alias.Value
			}
			lines[id] = m.Content[i].Line
		}
	}
	return lines
}
