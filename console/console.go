// Package console serves the web console: prebuilt pages embedded in the binary. The pages read all
// data from the public API and contain no run data.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// policy restricts a page to its own origin, and prevents text from becoming markup or script. See
// docs/security.md.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Secure sets the headers of every response below the console's path.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// types are the MIME types of console files. Text types declare UTF-8, because scripts with other
// characters fail to parse otherwise.
var types = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".ico":   "image/x-icon",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json; charset=utf-8",
	".png":   "image/png",
	".svg":   "image/svg+xml; charset=utf-8",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

// Names in the asset tree.
const (
	indexName = "index.html"
	// hashed is the folder whose file names contain a content hash.
	hashed = "assets/"
)

// asset is a file in its stored encodings: file name extension to path, "" for the unencoded form.
// The files stay in the binary until they are read, so that an idle host has none in memory.
type asset struct {
	tree  fs.FS
	forms map[string]string
	text  []byte // the unencoded form if it is not a file
	tag   string // names the content
	mime  string
	cache string
}

// Handler serves the console. Its requests have paths relative to the console; "/" is the first
// page.
type Handler struct {
	assets map[string]*asset
	base   string
}

// New returns the handler of the built-in console for a host with a base path: empty, or a path
// such as /a/b of letters, digits and -._~ only.
func New(base string) (*Handler, error) {
	tree, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newHandler(tree, base)
}

func newHandler(tree fs.FS, base string) (*Handler, error) {
	h := &Handler{assets: map[string]*asset{}, base: base}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		h.add(tree, name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	for name, a := range h.assets {
		if err := a.seal(); err != nil {
			return nil, fmt.Errorf("console: %s: %w", name, err)
		}
	}
	return h, h.fillIndex()
}

// add adds a file: NAME, NAME.br or NAME.gz.
func (h *Handler) add(tree fs.FS, file string) {
	form := path.Ext(file)
	if form != brotli && form != gzipped {
		form = ""
	}
	name := strings.TrimSuffix(file, form)
	a := h.assets[name]
	if a == nil {
		a = &asset{tree: tree, forms: map[string]string{}, mime: types[path.Ext(name)], cache: "no-cache"}
		if strings.HasPrefix(name, hashed) {
			a.cache = "public, max-age=31536000, immutable"
		}
		if a.mime == "" {
			a.mime = "application/octet-stream"
		}
		h.assets[name] = a
	}
	a.forms[form] = file
}

// seal sets the content tag from a stored form: what decompresses to something else has other bytes.
func (a *asset) seal() error {
	_, isPlain := a.forms[""]
	_, isGzipped := a.forms[gzipped]
	if !isPlain && !isGzipped {
		return errors.New("there is no form of it but brotli; add the one of gzip")
	}
	form := gzipped
	if isPlain {
		form = ""
	}
	stored, err := fs.ReadFile(a.tree, a.forms[form])
	if err != nil {
		return err
	}
	if form == gzipped {
		if _, err := gzip.NewReader(bytes.NewReader(stored)); err != nil {
			return err
		}
	}
	a.mark(stored)
	return nil
}

func (a *asset) mark(content []byte) {
	sum := sha256.Sum256(content)
	a.tag = base64.RawURLEncoding.EncodeToString(sum[:12])
}

// read returns a form. A missing unencoded form is decompressed, so the binary does not contain it.
func (a *asset) read(form string) ([]byte, error) {
	if form == "" && a.text != nil {
		return a.text, nil
	}
	if file, ok := a.forms[form]; ok {
		return fs.ReadFile(a.tree, file)
	}
	b, err := fs.ReadFile(a.tree, a.forms[gzipped])
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// baseMark is the placeholder of the host's base path in the index; the pages read it.
const baseMark = `<meta name="waybill-base" content="/"`

// fillIndex writes the base path into the index. Its asset links are relative to the console's
// root, and the index is also served for deeper paths.
func (h *Handler) fillIndex() error {
	a := h.assets[indexName]
	if a == nil {
		return errors.New("console: there is no " + indexName)
	}
	plain, err := a.read("")
	if err != nil {
		return fmt.Errorf("console: %s: %w", indexName, err)
	}
	text := string(plain)
	if !strings.Contains(text, baseMark) {
		return fmt.Errorf("console: %s lacks %s>", indexName, baseMark)
	}
	text = strings.Replace(text, baseMark, `<meta name="waybill-base" content="`+h.base+`/"`, 1)
	text = strings.ReplaceAll(text, `="./`, `="`+h.base+`/console/`)
	a.text = []byte(text)
	a.forms = nil // they lack the base path
	a.cache = "no-store"
	a.mark(a.text)
	return nil
}

// ServeHTTP serves a page or an asset.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this address takes GET", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	a := h.assets[name]
	switch {
	case a != nil:
	case strings.HasPrefix(name+"/", hashed) || types[path.Ext(name)] != "":
		http.Error(w, "the console has no such file", http.StatusNotFound)
		return
	default: // a route of the pages
		a = h.assets[indexName]
	}
	a.serve(w, r)
}

// serve sends the smallest encoding that the client accepts.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	form := a.choose(r.Header.Get("Accept-Encoding"))
	body, err := a.read(form)
	if err != nil {
		http.Error(w, "the file cannot be read", http.StatusInternalServerError)
		return
	}
	head := w.Header()
	head.Set("Content-Type", a.mime)
	head.Set("Cache-Control", a.cache)
	head.Set("Vary", "Accept-Encoding")
	head.Set("ETag", `"`+a.tag+form+`"`)
	if form != "" {
		head.Set("Content-Encoding", encodings[form])
		head.Set("Content-Length", strconv.Itoa(len(body)))
	}
	r.Header.Del("Range") // a part of an encoded file is of no use to a page
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
