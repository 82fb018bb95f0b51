package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/node"
)

// loadPacks reads the packs of a folder, none if it has no name, and those that come
// with the binary. What of them has no effect is logged.
func loadPacks(dir string, h pack.Host, log *slog.Logger, own ...pack.Source) ([]*pack.Pack, error) {
	sources, done, err := openPacks(dir)
	defer done()
	if err != nil {
		return nil, fmt.Errorf("%w: --packs %s: %w", errUsage, dir, err)
	}
	packs, notes, err := pack.Load(append(sources, own...), h)
	for _, n := range notes {
		log.Warn("a part of a pack has no effect on this host", "note", n.String())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: --packs %s: %w", errUsage, dir, err)
	}
	return packs, nil
}

// openPacks opens each folder in dir, whose name does not begin with a dot, as a
// pack of its own: no path and no link in it leads out of it. Files beside the
// folders are left alone, but for archives, which somebody will have meant. done
// closes what is open.
func openPacks(dir string) (sources []pack.Source, done func(), err error) {
	var open []*os.Root
	done = func() {
		for _, r := range open {
			_ = r.Close()
		}
	}
	if dir == "" {
		return nil, done, nil
	}
	all, err := os.OpenRoot(dir)
	if err != nil {
		return nil, done, errors.New("give an existing directory of packs")
	}
	open = append(open, all)
	entries, err := fs.ReadDir(all.FS(), ".")
	if err != nil {
		return nil, done, err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		info, err := all.Stat(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pack %s: the folder cannot be read within --packs (a link must not lead out of it): %w", name, err))
		case info.IsDir():
			r, err := all.OpenRoot(name)
			if err != nil {
				errs = append(errs, fmt.Errorf("pack %s: %w", name, err))
				continue
			}
			open = append(open, r)
			sources = append(sources, pack.Source{Folder: name, FS: r.FS()})
		case strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz"):
			errs = append(errs, fmt.Errorf("pack %s: archives are not read; unpack it into a folder", name))
		}
	}
	return sources, done, errors.Join(errs...)
}

// isPack reports whether a path is a folder with a manifest.
func isPack(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, pack.File))
	return err == nil && info.Mode().IsRegular()
}

// lintPack finds what is wrong with a pack, and where the schemas of its kinds
// leave the subset.
func lintPack(dir string, rules lint) ([]finding, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer func() { _ = root.Close() }()
	packs, _, err := pack.Load([]pack.Source{{Folder: filepath.Base(dir), FS: root.FS()}}, pack.Host{Any: true})
	if err != nil {
		return packFindings(dir, err), nil
	}
	out := templateFindings(dir, packs[0])
	for _, k := range packs[0].Kinds {
		for _, f := range rules.schema(k.Name, k.Schema) {
			f.File = filepath.Join(dir, k.File)
			out = append(out, f)
		}
	}
	return out, nil
}

// rulePack is the rule of findings about a manifest and the files it names.
const rulePack = "not-a-pack"

// packFindings are the errors of a pack, one finding each.
func packFindings(dir string, err error) []finding {
	var out []finding
	for _, e := range fault.All(err) {
		file, _ := e.Details["file"].(string)
		path, _ := e.Details["path"].(string)
		problem, _ := e.Details["problem"].(string)
		out = append(out, finding{File: filepath.Join(dir, file), Path: path, Rule: rulePack, Message: problem})
	}
	return out
}

// acceptorOffers is what packs can count on where there is only an acceptor.
func acceptorOffers() pack.Host {
	return pack.Host{
		Protocol: wire.ProtocolVersion, InRange: inRange, Capabilities: []string{"aiEnvelope", "host.aiEnvelope"}, Types: node.Builtin().IDs(),
	}
}

// inRange holds a version to a range of versions, written as npm writes them.
func inRange(version, versions string) (bool, error) {
	c, err := semver.NewConstraint(versions)
	if err != nil {
		return false, err
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return false, err
	}
	return c.Check(v), nil
}

// devOffers is what they can count on in a whole host with these providers, whose nodes ask the
// default model (PROVIDER/MODEL) unless they name another. What the gate could satisfy counts,
// though it be by a model that only the operator of its server knows to be there (OpenWOP envelope
// contract §16.5).
func devOffers(c *catalogue.Catalogue, providers []string, defaultModel string) pack.Host {
	h := acceptorOffers()
	h.Capabilities = append(h.Capabilities, "aiProviders", "providerUsage", "idempotency", "debugBundle", "modelCapabilities")
	id, model, _ := strings.Cut(defaultModel, "/")
	models := []modelgate.Model{{Provider: id, Model: model}}
	for _, id := range providers {
		models = append(models, c.Possible(id)...)
	}
	h.Model = func(capability string) bool {
		return slices.ContainsFunc(models, func(m modelgate.Model) bool {
			has, _ := c.Has(m, capability)
			return has
		})
	}
	return h
}
