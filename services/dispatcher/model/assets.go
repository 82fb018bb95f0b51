package model

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"waybill.dev/waybill/internal/share"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
	"waybill.dev/waybill/services/dispatcher/provider"
)

const (
	// maxPromptAssets limits the assets of one prompt, in bytes. Vendors accept about as much in one
	// request.
	maxPromptAssets = 20 << 20
	// maxStoredAsset is the size of the largest asset that a host stores.
	maxStoredAsset = 6 << 20
	// DefaultAssetMemory limits the assets of all prompts of this process, in bytes. A call holds its
	// share until its node ends, and others wait.
	DefaultAssetMemory = 256 << 20
	// MinAssetMemory is enough for any prompt.
	MinAssetMemory = 4 * maxPromptAssets
)

// assetMemory divides the memory for assets among tenants.
type assetMemory struct {
	pool *share.Pool
	// turns admits the prompts of a tenant to the pool one after another, so that a large one is not
	// overtaken forever.
	turns *share.Turns
}

func newAssetMemory(limit int64) assetMemory {
	return assetMemory{pool: share.New(cmp.Or(limit, DefaultAssetMemory), false), turns: share.NewTurns(1)}
}

// reserve waits for n bytes of a tenant. Zero bytes are not waited for.
func (a assetMemory) reserve(ctx context.Context, tenant string, n int64) (*assetShare, error) {
	if n == 0 {
		return &assetShare{}, nil
	}
	end, err := a.turns.Take(ctx, tenant)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	defer end()
	switch {
	case a.pool.Wait(ctx, tenant, n):
		return &assetShare{pool: a.pool, tenant: tenant, held: n}, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, fault.New(fault.ServiceUnavailable, "too many images, sounds and files are waiting for memory; try again")
	}
}

// assetShare is the memory that a prompt holds. The zero value holds none. It is not safe for concurrent
// use.
type assetShare struct {
	pool   *share.Pool
	tenant string
	held   int64
}

// shrink gives back all but n bytes.
func (a *assetShare) shrink(n int64) {
	if n < a.held {
		a.pool.Give(a.tenant, a.held-n)
		a.held = n
	}
}

func (a *assetShare) release() { a.shrink(0) }

// loadedAssets are the assets of a prompt, by their address, and what they occupy.
type loadedAssets struct {
	byURL   map[string]Asset
	release func()
}

// newMaterial returns the material of a node's prompt with its assets. The log has the references of
// assets, and only the request to the model has their bytes.
func (l *Loop) newMaterial(ctx context.Context, t Task) (*material, *wire.NodeError, error) {
	found := media.Of(t.Input)
	m := &material{in: t.Input, items: found.Items, trust: wire.Trusted, assets: loadedAssets{release: func() {}}}
	m.in.Ports, m.in.Variables = found.Ports, found.Variables
	if found.Unfit {
		return nil, node.Invalid("/inputs/%s: want an image, a sound or a file, {bytes, mimeType, url or base64}, "+
			"an envelope, or a list of these", media.PortMedia), nil
	}
	refs, inline := m.references()
	if len(m.items)+len(refs) == 0 && inline == 0 {
		return m, nil, nil
	}
	if inline > maxPromptAssets {
		return nil, tooLarge(), nil
	}
	held, err := l.assetMemory.reserve(ctx, t.Tenant, l.largest(refs, inline))
	if err != nil {
		return nil, nil, err
	}
	size, bad, err := l.loadAssets(ctx, t, m, refs, inline)
	if bad != nil || err != nil {
		held.release()
		return nil, bad, err
	}
	held.shrink(size)
	m.assets.release = held.release
	return m, nil, nil
}

// largest returns the bytes that the assets of a prompt take at most. The declared size of a stored asset
// may be wrong, so each counts as the largest one.
func (l *Loop) largest(refs []reference, inline int64) int64 {
	if l.deps.Assets == nil { // none is loaded
		return inline
	}
	return min(inline+int64(len(refs))*maxStoredAsset, maxPromptAssets)
}

func tooLarge() *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ContentTooLong),
		Message: fmt.Sprintf("the images, sounds and files of the prompt have more than %d bytes; pass fewer or smaller ones", maxPromptAssets),
	}
}

// reference is an address of an asset in a node's inputs.
type reference struct {
	url, from string
	// item means that it must be an asset of this host. A part of a message may have any address.
	item bool
}

// references returns the addresses to load, those in messages included, and the size of the assets that
// the inputs contain. An address is repeated for each part of the prompt that has it.
func (m *material) references() (refs []reference, inline int64) {
	for _, i := range m.items {
		switch {
		case isData(i.URL):
			_, data, _ := strings.Cut(i.URL, ",")
			inline += int64(base64.StdEncoding.DecodedLen(len(data)))
		case i.URL != "":
			refs = append(refs, reference{url: i.URL, from: i.From, item: true})
		default:
			inline += int64(base64.StdEncoding.DecodedLen(len(i.Base64)))
		}
	}
	var messages []struct {
		Content json.RawMessage `json:"content"`
	}
	_ = strictjson.Read(m.in.Ports[portMessages], &messages) // reported when the messages are read
	for n, g := range messages {
		eachPart(g.Content, func(_ int, p provider.Part) {
			inline += int64(len(p.Data))
			if mayBeStored(p.URL) {
				refs = append(refs, reference{url: p.URL, from: fmt.Sprintf("/inputs/%s/%d/content", portMessages, n)})
			}
		})
	}
	return refs, inline
}

// mayBeStored reports whether an address has the path of a stored asset: /v1/, any folders, assets/ and a
// token. The vendor fetches any other.
func mayBeStored(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.Contains(u.Path, "/v1/") && path.Base(path.Dir(u.Path)) == "assets"
}

func isData(address string) bool { return len(address) >= 5 && strings.EqualFold(address[:5], "data:") }

// eachPart calls visit for each readable part of a message's content. Servers may support parts that
// cannot be read.
func eachPart(content json.RawMessage, visit func(index int, p provider.Part)) {
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return
	}
	for i, raw := range parts {
		read, err := provider.Message{Content: strictjson.RenderPlain([]json.RawMessage{raw})}.Parts()
		if err == nil && len(read) == 1 {
			visit(i, read[0])
		}
	}
}

// loadAssets loads the assets of this host, and returns the size of all assets of the prompt, each as
// often as the prompt has it. It never requests another address: an envelope must not make the host fetch
// one (OpenWOP envelope contract §12). It stops at the asset that exceeds maxPromptAssets.
func (l *Loop) loadAssets(
	ctx context.Context, t Task, m *material, refs []reference, inline int64,
) (size int64, bad *wire.NodeError, err error) {
	m.assets.byURL = map[string]Asset{}
	foreign := map[string]bool{}
	size = inline
	for _, r := range refs {
		a, ours := m.assets.byURL[r.url]
		if !ours && !foreign[r.url] {
			a, ours, err = l.loadAsset(ctx, t, r.url)
		}
		switch {
		case fault.CodeOf(err) == fault.NotFound:
			return 0, &wire.NodeError{
				Code:    string(fault.NotFound),
				Message: r.from + ": there is no such asset for this run",
			}, nil
		case err != nil:
			return 0, nil, err
		case !ours && r.item:
			return 0, node.Invalid("%s: its url is not an asset of this host, which fetches no other address; pass the bytes as base64", r.from), nil
		case !ours:
			foreign[r.url] = true
			continue
		}
		if size += int64(len(a.Data)); size > maxPromptAssets {
			return 0, tooLarge(), nil
		}
		m.assets.byURL[r.url] = a
	}
	return size, m.checkTypes(), nil
}

func (l *Loop) loadAsset(ctx context.Context, t Task, url string) (a Asset, ours bool, err error) {
	if l.deps.Assets == nil {
		return Asset{}, false, nil
	}
	return l.deps.Assets.Load(ctx, subject.Run{Tenant: t.Tenant, WorkflowID: t.WorkflowID, RunID: t.RunID}, url)
}

// checkTypes rejects an asset without a type: vendors require one.
func (m *material) checkTypes() *wire.NodeError {
	for _, i := range m.items {
		typ := m.typeOf(i)
		if kind, _, err := mime.ParseMediaType(typ); !isData(i.URL) && (err != nil || !strings.Contains(kind, "/")) {
			return node.Invalid("%s: mimeType %q: want the type of the %s, such as image/png", i.From, typ, i.Kind)
		}
	}
	return nil
}

// typeOf returns the type of an asset, else that with which it was stored.
func (m *material) typeOf(i media.Item) string {
	return firstNonEmpty(i.MIME, m.assets.byURL[i.URL].MIME)
}

// addAssets adds the assets of the prompt to the last of the messages from own on, or as a message of
// their own.
func (m *material) addAssets(msgs []provider.Message, own int) []provider.Message {
	var parts []json.RawMessage
	for _, i := range m.items {
		parts = append(parts, m.partsOf(i)...)
	}
	if len(parts) == 0 {
		return msgs
	}
	if last := len(msgs) - 1; last >= own {
		text, _ := strictjson.String(msgs[last].Content)
		parts = append([]json.RawMessage{textPart(text)}, parts...)
		msgs = msgs[:last]
	}
	return append(msgs, provider.Message{Role: "user", Content: strictjson.RenderPlain(parts)})
}

// partsOf returns the parts of an asset. An untrusted file has a fenced notice, or is fenced if vendors
// show it as text.
func (m *material) partsOf(i media.Item) []json.RawMessage {
	raw := mediaBlock(string(i.Kind), m.typeOf(i), i.Base64, i.URL, i.Name)
	if a, ok := m.assets.byURL[i.URL]; ok {
		raw = mediaBlock(string(i.Kind), m.typeOf(i), base64.StdEncoding.EncodeToString(a.Data), "", i.Name)
	}
	if !i.Untrusted {
		return []json.RawMessage{raw}
	}
	m.trust = wire.Untrusted
	return m.fenceAttachment(raw)
}

// mediaBlock returns a part in the host's own form.
func mediaBlock(kind, mimeType, data, url, name string) json.RawMessage {
	var w wire.ObjectWriter
	w.String("type", kind)
	w.NonEmpty("mimeType", mimeType)
	w.NonEmpty("base64", data)
	w.NonEmpty("url", url)
	if kind == string(media.File) {
		w.NonEmpty("name", name)
	}
	return w.Close()
}

// inMessage returns the content of a message with the bytes of the host's assets in place of their
// addresses, which vendors cannot reach.
func (a loadedAssets) inMessage(content json.RawMessage) json.RawMessage {
	if len(a.byURL) == 0 {
		return content
	}
	var parts []json.RawMessage
	_ = json.Unmarshal(content, &parts) // a text has no parts
	changed := false
	eachPart(content, func(i int, p provider.Part) {
		stored, ok := a.byURL[p.URL]
		if !ok {
			return
		}
		changed = true
		parts[i] = mediaBlock(string(p.Kind), firstNonEmpty(p.MIME, stored.MIME), base64.StdEncoding.EncodeToString(stored.Data), "", p.Name)
	})
	if !changed {
		return content
	}
	return strictjson.RenderPlain(parts)
}
