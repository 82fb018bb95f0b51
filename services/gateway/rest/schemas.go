package rest

import (
	"net/http"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/schemas"
)

// schemasPrefix is the path of the schemas of files, for editors. Those of envelope kinds are below
// envelopesPrefix.
const (
	schemasPrefix   = "/schemas/"
	envelopesPrefix = schemasPrefix + "envelopes/"
)

// fileSchema serves a JSON Schema of a kind of file, without a credential. Editors in browsers may read
// it from any origin.
func fileSchema(w http.ResponseWriter, r *http.Request, name string) error {
	doc, err := schemas.FS.ReadFile(name)
	if err != nil { // no such file, or a folder
		return fault.New(fault.NotFound, "no schema of files has this name; see /schemas/workflow.schema.json")
	}
	return getOnly(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/schema+json")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(doc) //nolint:gosec // G705: a file of this package; the client may have gone
	}))
}
