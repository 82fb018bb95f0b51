package acceptor

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// GetAsset returns the asset of a token.
func (h handler) GetAsset(ctx context.Context, req *acceptorv1.GetAssetRequest) (*acceptorv1.GetAssetResponse, error) {
	if h.s.assets == nil {
		return nil, fault.New(fault.NotFound, "there is no such asset")
	}
	a, err := h.s.assets.Open(ctx, req.GetToken())
	if err != nil {
		return nil, err
	}
	return &acceptorv1.GetAssetResponse{Data: a.Data, MimeType: a.MimeType, Name: a.Name, Attachment: a.Attachment}, nil
}

// holdsNoSecret refuses an asset that the redactor would change: an asset is kept
// and served as it came. Those of envelopes pass the redactor with their envelope.
func (h handler) holdsNoSecret(ctx context.Context, req *acceptorv1.PutAssetRequest) error {
	text := strings.ToValidUTF8(string(req.GetData()), "\uFFFD") // of an image nothing else is text
	clean, err := h.s.redactor.Texts(ctx, subject.Run{Tenant: req.GetTenant()}, wire.Registration{}, []string{text, req.GetMimeType()})
	switch {
	case err != nil:
		return err
	case clean[0] != text || clean[1] != req.GetMimeType():
		return fault.New(fault.ValidationError, "the asset holds a secret of this host, or what looks like one; an asset is served as it came")
	default:
		return nil
	}
}

// PutAsset serves the test seam; without the switch there is nothing here.
func (h handler) PutAsset(ctx context.Context, req *acceptorv1.PutAssetRequest) (*acceptorv1.PutAssetResponse, error) {
	switch {
	case h.s.seam == nil || h.s.assets == nil:
		return nil, fault.New(fault.NotFound, "test seams are off")
	case !subject.Token(req.GetTenant()):
		return nil, fault.New(fault.ValidationError, "tenant: must not be empty")
	}
	if n := base64.StdEncoding.EncodedLen(len(req.GetData())); n > h.s.cfg.MaxMediaBytes {
		return nil, fault.New(fault.PayloadTooLarge, "the asset has %d characters of base64; at most %d are taken", n, h.s.cfg.MaxMediaBytes)
	}
	if err := h.holdsNoSecret(ctx, req); err != nil {
		return nil, err
	}
	token, err := h.s.assets.Put(ctx, req.GetTenant(), accept.Asset{Data: req.GetData(), MimeType: req.GetMimeType()},
		time.Duration(req.GetTtlSeconds())*time.Second)
	if err != nil {
		return nil, err
	}
	return &acceptorv1.PutAssetResponse{Token: token}, nil
}
