package kinds

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
)

const (
	suffix = ".schema.json"
	// maxSchemaBytes limits one file.
	maxSchemaBytes = 1 << 20
	// defaultVersion is the version of a schema without x-schemaVersion.
	defaultVersion = 1
)

// LoadDir registers every <kind>.schema.json directly in a folder and ignores other
// files. The version of a kind is the schema's x-schemaVersion, 1 if absent. The error
// joins the errors of all files.
func (r *Registry) LoadDir(dir fs.FS) (warnings []string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("read folder of kinds: %w", err)
	}
	var problems []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || e.IsDir() {
			continue
		}
		more, err := r.LoadFile(dir, e.Name(), name)
		warnings = append(warnings, more...)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", e.Name(), err))
		}
	}
	return warnings, errors.Join(problems...)
}

// LoadFile registers the kind of one file of a folder.
func (r *Registry) LoadFile(dir fs.FS, file, name string) (warnings []string, err error) {
	info, err := fs.Stat(dir, file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSchemaBytes {
		return nil, fault.New(fault.ValidationError, "kind %s: the schema has %d bytes, the limit is %d", name, info.Size(), maxSchemaBytes)
	}
	doc, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, err
	}
	version, err := versionOf(name, doc)
	if err != nil {
		return nil, err
	}
	return r.register(name, version, doc, "file "+file)
}

// versionOf reads x-schemaVersion.
func versionOf(name string, doc []byte) (int, error) {
	v, found, err := pack.SchemaVersion(doc)
	switch {
	case err != nil:
		return 0, fault.New(fault.ValidationError, "kind %s: %s", name, err).With("path", "/x-schemaVersion")
	case !found:
		return defaultVersion, nil
	}
	return v, nil
}
