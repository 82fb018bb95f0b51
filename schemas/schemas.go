// Package schemas embeds the generated JSON Schemas of the files that authors and operators write. Hosts
// serve them at /schemas/.
package schemas

import "embed"

// FS has the schemas by file name.
//
//go:embed *.schema.json config/*.schema.json
var FS embed.FS
