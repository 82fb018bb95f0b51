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
	// maxSchemaBytes bounds one file.
	maxSchemaBytes = 1 << 20
	// defaultVersion is the version of a schema without x-schemaVersion.
	defaultVersion = 1
)

// LoadDir registers every <kind>.schema.json at the top of a folder; other files
// are left alone. The version of a kind stands in the schema's x-schemaVersion,
// 1 when absent. All files are tried; the error joins what is wrong with each.
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
		more, err := r.load(dir, e.Name(), name)
		warnings = append(warnings, more...)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", e.Name(), err))
		}
	}
	return warnings, errors.Join(problems...)
}

func (r *Registry) load(dir fs.FS, file, name string) ([]string, error) {
	info, err := fs.Stat(dir, file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSchemaBytes {
		return nil, fault.New(fault.ValidationError, "kind %s: the schema has more than %d bytes", name, maxSchemaBytes)
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
	v, told, err := pack.SchemaVersion(doc)
	switch {
	case err != nil:
		return 0, fault.New(fault.ValidationError, "kind %s: %s", name, err)
	case !told:
		return defaultVersion, nil
	}
	return v, nil
}
