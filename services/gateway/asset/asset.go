// Package asset serves the images, sounds and files of models. The token in the
// address is the credential; whoever has it may read that one asset.
package asset

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
)

// Handler serves assets out of the acceptor.
type Handler struct {
	Acceptor acceptorv1.AcceptorClient
}

// Serve answers a request for the asset of a token (OpenWOP envelope contract
// §17). Any token that names no asset for the caller is not found: unknown,
// expired, and changed ones look alike.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, token string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.New(fault.MethodNotAllowed, "this address takes GET, HEAD")
	}
	res, err := h.Acceptor.GetAsset(r.Context(), &acceptorv1.GetAssetRequest{Token: token})
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", contentType(res.GetMimeType()))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "private, max-age=300")
	// A model's file is nobody's page: it runs nothing and loads nothing.
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Referrer-Policy", "no-referrer") // the address is a credential
	if d := disposition(res); d != "" {
		head.Set("Content-Disposition", d)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(res.GetData())) // ranges, too
	return nil
}

const unknownType = "application/octet-stream"

// contentType is the stored one if it is a media type.
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

// disposition has files saved and not shown, under a name without a path.
func disposition(a *acceptorv1.GetAssetResponse) string {
	if !a.GetAttachment() {
		return ""
	}
	name := a.GetName()
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
