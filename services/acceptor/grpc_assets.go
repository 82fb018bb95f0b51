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
	"waybill.dev/waybill/services/acceptor/assets"
)

// GetAsset returns the asset of a token.
func (h handler) GetAsset(ctx context.Context, req *acceptorv1.GetAssetRequest) (*acceptorv1.GetAssetResponse, error) {
	if h.s.assets == nil {
		return nil, assets.ErrNotFound()
	}
	a, err := h.s.assets.Load(ctx, req.GetToken())
	if err != nil {
		return nil, err
	}
	return protoAsset(a), nil
}

// LoadAsset returns the asset at a URL for a run. The URL is never requested.
func (h handler) LoadAsset(ctx context.Context, req *acceptorv1.LoadAssetRequest) (*acceptorv1.LoadAssetResponse, error) {
	run, err := parseRun(req.GetRun())
	if err != nil {
		return nil, err
	}
	if h.s.assets == nil {
		return &acceptorv1.LoadAssetResponse{}, nil
	}
	ref, ours := h.s.assets.Resolve(req.GetUrl())
	switch {
	case !ours:
		return &acceptorv1.LoadAssetResponse{}, nil
	case ref.Tenant != run.Tenant:
		return nil, assets.ErrNotFound()
	}
	if ref.Run != "" && ref.Run != run.RunID {
		related, err := h.s.related(ctx, run.Tenant, ref.Run, run.RunID)
		if err != nil {
			return nil, err
		}
		if !related {
			return nil, assets.ErrNotFound()
		}
	}
	a, err := h.s.assets.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &acceptorv1.LoadAssetResponse{Asset: protoAsset(a)}, nil
}

func protoAsset(a accept.Asset) *acceptorv1.GetAssetResponse {
	return &acceptorv1.GetAssetResponse{Data: a.Data, MimeType: a.MimeType, Name: a.Name, Attachment: a.Attachment}
}

// checkNoSecret refuses an asset that the redactor would change, since an asset is
// stored and served unchanged. The pipeline checks the assets of envelopes.
func (h handler) checkNoSecret(ctx context.Context, req *acceptorv1.PutAssetRequest) error {
	text := strings.ToValidUTF8(string(req.GetData()), "\uFFFD") // binary data has few valid bytes
	clean, err := h.s.redactor.Texts(ctx, subject.Run{Tenant: req.GetTenant()}, wire.Registration{}, []string{text, req.GetMimeType()})
	switch {
	case err != nil:
		return err
	case clean[0] != text || clean[1] != req.GetMimeType():
		return fault.New(fault.ValidationError, "the asset contains a secret, or text that looks like one; remove it, since assets are served unchanged")
	default:
		return nil
	}
}

// PutAsset is part of the test seam.
func (h handler) PutAsset(ctx context.Context, req *acceptorv1.PutAssetRequest) (*acceptorv1.PutAssetResponse, error) {
	if err := h.s.checkSeams(req.GetTenant()); err != nil {
		return nil, err
	}
	if h.s.assets == nil {
		return nil, seamsOff()
	}
	if n := base64.StdEncoding.EncodedLen(len(req.GetData())); n > h.s.cfg.MaxMediaBytes {
		return nil, fault.New(fault.PayloadTooLarge, "the asset has %d characters of base64, the limit is %d", n, h.s.cfg.MaxMediaBytes)
	}
	if err := h.checkNoSecret(ctx, req); err != nil {
		return nil, err
	}
	token, err := h.s.assets.SaveUnbound(ctx, req.GetTenant(), accept.Asset{
		Data:     req.GetData(),
		MimeType: req.GetMimeType(),
	},
		time.Duration(req.GetTtlSeconds())*time.Second)
	if err != nil {
		return nil, err
	}
	return &acceptorv1.PutAssetResponse{Token: token}, nil
}
