package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"waybill.dev/waybill/internal/host/packs"
)

// folders are the folders of files that the host reads again when they change, apart from workflows.
func (o *Options) folders() []string {
	var out []string
	for _, dir := range []string{o.Envelopes.Kinds, o.Execution.Packs, o.Execution.Prompts.Dir} {
		if dir != "" {
			out = append(out, dir)
		}
	}
	return out
}

// reload reads kinds, packs and prompt templates again, and replaces them if all of them are valid.
func (h *Host) reload(context.Context) error {
	o := &h.opts.Execution
	quiet := slog.New(slog.DiscardHandler) // the notes were logged at start
	loaded, err := packs.Load(o.Packs, o.offers(h.catalogue), quiet, h.opts.demoPacks()...)
	if err != nil {
		return err
	}
	prompts, perr := o.Prompts.Config(loaded, quiet)
	var kinds fs.FS
	kinds, kerr := packs.KindFiles(h.opts.Envelopes.Kinds)
	if err := errors.Join(perr, kerr); err != nil {
		return err
	}
	applyKinds, err := h.acceptor.PrepareReload(kinds, loaded)
	if err != nil {
		return err
	}
	applyTypes, err := h.dispatcher.PrepareReload(loaded, prompts.Library)
	if err != nil {
		return err
	}
	applyKinds()
	applyTypes()
	h.public.gateway.DiscoveryChanged()
	return nil
}
