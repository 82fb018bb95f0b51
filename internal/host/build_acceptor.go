package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

func (h *Host) buildAcceptor(context.Context, []auth.Spec) (err error) {
	cfg := acceptor.DefaultConfig()
	cfg.TestSeams = h.opts.TestSeams
	cfg.Lint, cfg.Strictness = kinds.Lint(h.opts.KindLint), acceptor.Strictness(h.opts.Strictness)
	if cfg.KindsDir, err = packs.KindFiles(h.opts.Kinds); err != nil {
		return err
	}
	cfg.Packs = h.packs
	cfg.MaxInlineBytes, cfg.MaxMediaBytes = h.opts.MaxInline, h.opts.MaxMedia
	vault, err := h.openAssets()
	if err != nil {
		return err
	}
	deps := acceptor.Deps{Log: h.stores.Log, Redactor: h.Clients.redactor, Clock: time.Now, Logger: h.Log, Assets: vault, Seam: h.stores.Seams.State}
	if h.spans != nil {
		deps.Spans = h.spans
	}
	s, err := acceptor.New(cfg, deps)
	if err != nil {
		return ofFiles(err)
	}
	h.Clients.acceptor = acceptorv1.NewAcceptorClient(h.serve("acceptor", s.Register))
	return nil
}

// openAssets makes the place of assets. Their URLs are signed with the operator's
// keys, or with one that derives from the host's.
func (h *Host) openAssets() (*assets.Vault, error) {
	secret, err := h.opts.key()
	if err != nil {
		return nil, err
	}
	derived, err := assets.DeriveKey(secret)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(h.opts.AssetKeys, derived)
	if err != nil {
		return nil, fmt.Errorf("%w: --asset-keys: %w", exit.ErrUsage, err)
	}
	return assets.New(h.stores.Assets, keys, func() string { return h.baseURL() + strings.TrimSuffix(rest.AssetsPrefix, "/") }, time.Now)
}
