package rest

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
)

// Assets serves the images, sounds and files that models produced. The token in the URL is
// the credential: its holder may read that one asset.
type Assets struct {
	Acceptor acceptorv1.AcceptorClient
}

// ServeAdmitted is Serve behind a gate, for a server of assets alone. Its callers have no API key.
func (a *Assets) ServeAdmitted(gate *admission.Gate, w http.ResponseWriter, r *http.Request, token string) error {
	from := gate.Identify("", admission.Host(r.RemoteAddr))
	leave, err := gate.Enter(admission.Ordinary, from)
	if err != nil {
		return err
	}
	defer leave()
	held := gate.Bytes(from)
	defer held.Close()
	return a.Serve(w, r.WithContext(withAccount(r.Context(), held)), token)
}

// Serve returns the asset of a token (OpenWOP envelope contract §17). Unknown, expired and
// altered tokens are all answered with the same not-found error.
func (a *Assets) Serve(w http.ResponseWriter, r *http.Request, token string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, []string{http.MethodGet, http.MethodHead})
	}
	res, err := a.Acceptor.GetAsset(r.Context(), &acceptorv1.GetAssetRequest{Token: token})
	if err != nil {
		return err
	}
	// The asset stays in memory until the caller has read it, which may take long.
	if err := accountOf(r.Context()).Take(int64(len(res.GetData()))); err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", contentType(res.GetMimeType()))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "private, max-age=300")
	// A file from a model must not run scripts or load anything.
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Referrer-Policy", "no-referrer") // the URL is a credential
	if d := disposition(res); d != "" {
		head.Set("Content-Disposition", d)
	}
	r.Header.Del("If-Match") // an asset never changes and has no ETag
	out := &rangeWriter{ResponseWriter: w}
	http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(res.GetData())) // also answers range requests
	if !out.failed {
		return nil
	}
	head.Del("Content-Disposition")
	head.Del("Content-Security-Policy")
	return fault.New(fault.RangeNotSatisfiable, "Range: names no part of the asset, which has %d bytes; want a range such as bytes=0-1023", len(res.GetData())).
		With("sizeBytes", len(res.GetData()))
}

// rangeWriter drops the error that http.ServeContent writes as plain text, so that the caller can write
// the error envelope.
type rangeWriter struct {
	http.ResponseWriter

	failed bool
}

// WriteHeader sends the headers of a success.
func (w *rangeWriter) WriteHeader(code int) {
	if w.failed = code == http.StatusRequestedRangeNotSatisfiable; !w.failed {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Write sends a part of the asset.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the real writer to http.ResponseController.
func (w *rangeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const unknownType = "application/octet-stream"

// contentType returns the stored type if it is a media type, else unknownType.
func contentType(stored string) string {
	t, params, err := mime.ParseMediaType(stored)
	if err != nil || !strings.Contains(t, "/") {
		return unknownType
	}
	if out := mime.FormatMediaType(t, params); out != "" {
		return out
	}
	return unknownType
}

// disposition makes browsers save attachments instead of showing them. It drops any path
// from the file name.
func disposition(res *acceptorv1.GetAssetResponse) string {
	if !res.GetAttachment() {
		return ""
	}
	name := res.GetName()
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "attachment"
	}
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}
