package hostfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

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
	var (
		values map[string]string
		doc    yaml.Node
	)
	if yaml.Unmarshal(b, &values) != nil || yaml.Unmarshal(b, &doc) != nil { // the parser's error quotes the file
		return nil, fmt.Errorf("%s: want lines of the form id: value", file)
	}
	lines := linesOf(&doc)
	place := func(id string) string {
		if lines[id] == 0 { // merged from elsewhere in the file
			return file
		}
		return fmt.Sprintf("%s:%d", file, lines[id])
	}
	var (
		out  []redact.Secret
		errs []error
	)
	for _, id := range slices.Sorted(maps.Keys(values)) {
		s := redact.Secret{ID: id, Value: redact.Value(values[id])}
		if err := s.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place(id), err))
		}
		if len(s.Value) < redact.MinLength {
			errs = append(errs, fmt.Errorf("%s: secret is shorter than %d bytes and cannot be redacted reliably", place(id), redact.MinLength))
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

// linesOf maps the members of a document to their line numbers.
func linesOf(doc *yaml.Node) map[string]int {
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
