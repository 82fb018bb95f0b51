package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
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
	return r.Register(name, version, doc)
}

// versionOf reads x-schemaVersion. 2.0 is the integer 2, as everywhere in JSON
// Schema.
func versionOf(name string, doc []byte) (int, error) {
	var head struct {
		Version *json.Number `json:"x-schemaVersion"`
	}
	if err := strictjson.Read(doc, &head); err != nil {
		return 0, fault.New(fault.ValidationError, "kind %s: the schema must be a JSON object, and x-schemaVersion a number", name).Wrap(err)
	}
	if head.Version == nil {
		return defaultVersion, nil
	}
	v, ok := new(big.Rat).SetString(head.Version.String())
	if !ok || !v.IsInt() || v.Sign() < 0 || v.Num().BitLen() > 31 {
		return 0, fault.New(fault.ValidationError, "kind %s: x-schemaVersion needs an integer of 0 or more", name)
	}
	return int(v.Num().Int64()), nil
}
