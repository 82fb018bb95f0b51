// Command apitexts writes the comments of the public proto files as JSON, by the full names of what they
// describe: services/gateway/openapi/texts.json, from which the OpenAPI document has its texts. Run it
// from the top of the repository: `make gen`.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// files are the files of the public services, below proto/.
var files = []string{"openwop/v1/engine.proto", "waybill/host/v1/host.proto"}

const out = "services/gateway/openapi/texts.json"

func main() {
	doc, err := texts()
	if err == nil {
		err = os.WriteFile(out, append(doc, '\n'), 0o644) //nolint:gosec // G306: as every source file
	}
	if err != nil {
		log.Fatal(err)
	}
}

// texts renders the comments of the files and of those that they import.
func texts() ([]byte, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"proto"}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := c.Compile(context.Background(), files...)
	if err != nil {
		return nil, err
	}
	found, seen := map[string]string{}, map[string]bool{}
	for _, f := range compiled {
		collect(f, found, seen)
	}
	return json.MarshalIndent(found, "", "  ")
}

// collect adds the comments of a file and of its imports.
func collect(f protoreflect.FileDescriptor, found map[string]string, seen map[string]bool) {
	if seen[f.Path()] || strings.HasPrefix(f.Path(), "google/") {
		return
	}
	seen[f.Path()] = true
	add := func(d protoreflect.Descriptor) {
		if text := strings.Join(strings.Fields(f.SourceLocations().ByDescriptor(d).LeadingComments), " "); text != "" {
			found[string(d.FullName())] = text
		}
	}
	for i := range f.Services().Len() {
		methods := f.Services().Get(i).Methods()
		for k := range methods.Len() {
			add(methods.Get(k))
		}
	}
	for i := range f.Messages().Len() {
		m := f.Messages().Get(i)
		add(m)
		for k := range m.Fields().Len() {
			add(m.Fields().Get(k))
		}
	}
	for i := range f.Imports().Len() {
		collect(f.Imports().Get(i).FileDescriptor, found, seen)
	}
}
