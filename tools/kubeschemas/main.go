// Command kubeschemas writes the JSON Schemas with which `make deploy-check` validates manifests. Those
// of Kubernetes' own kinds come from its OpenAPI document, the others from CustomResourceDefinitions.
// Each file is self-contained and rejects members that the API does not have.
//
//	kubeschemas -out DIR [-swagger FILE] [CRD.yaml...]
//
// A schema is at DIR/GROUP/KIND_VERSION.json, with the kind in lower case: a layout that kubeconform
// supports.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", "", "directory to write to")
	swagger := flag.String("swagger", "", "Kubernetes' api/openapi-spec/swagger.json")
	flag.Parse()
	n, err := run(*out, *swagger, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubeschemas:", err)
		os.Exit(1)
	}
	fmt.Printf("%d schemas in %s\n", n, *out)
}

func run(out, swagger string, crds []string) (int, error) {
	if out == "" {
		return 0, errors.New("want -out DIR")
	}
	var all []schema
	if swagger != "" {
		doc, err := os.ReadFile(swagger) //nolint:gosec // G304: the caller names the file
		if err != nil {
			return 0, err
		}
		own, err := fromSwagger(doc)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", swagger, err)
		}
		all = append(all, own...)
	}
	for _, file := range crds {
		doc, err := os.ReadFile(file) //nolint:gosec // G304: the caller names the file
		if err != nil {
			return 0, err
		}
		more, err := fromCRD(doc)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, more...)
	}
	for _, s := range all {
		if err := s.write(out); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// schema is the schema of one kind.
type schema struct {
	group, version, kind string
	body                 map[string]any
}

// write stores it at kubeconform's path. As in kubeconform, the core group is named by the version
// only.
func (s schema) write(dir string) error {
	group := s.group
	if group == "" {
		group = s.version
	}
	body, err := json.Marshal(s.body)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, group, strings.ToLower(s.kind)+"_"+s.version+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o600)
}
