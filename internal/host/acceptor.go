package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/gateway/rest"
)

// Envelopes are the settings of accepted envelopes.
type Envelopes struct {
	// Kinds is a directory of additional kinds; empty disables it.
	Kinds                string
	KindLint, Strictness string
	// MaxInlineBytes limits an asset within its event, MaxMediaBytes an asset sent by a model.
	MaxInlineBytes, MaxMediaBytes int
	// Limits are the host's envelope limits.
	Limits acceptor.Limits
	// AIEnvelope is the capability host.aiEnvelope.
	AIEnvelope bool
	TestSeams  bool
}

// DefaultEnvelopes are the settings without flags.
func DefaultEnvelopes() Envelopes {
	def := acceptor.DefaultConfig()
	return Envelopes{
		KindLint: string(def.Lint), Strictness: string(def.Strictness),
		MaxInlineBytes: accept.DefaultMaxInlineBytes, MaxMediaBytes: accept.DefaultMaxMediaBytes,
		Limits: def.Limits, AIEnvelope: true,
	}
}

// Check returns all errors in the values, joined. It reads no files.
func (o *Envelopes) Check() error {
	var errs []error
	if !kinds.Lint(o.KindLint).Valid() {
		errs = append(errs, fmt.Errorf("--kind-lint %q: want strict, warn or off", o.KindLint))
	}
	if s := acceptor.Strictness(o.Strictness); s != acceptor.StrictnessWarn && s != acceptor.StrictnessStrict {
		errs = append(errs, fmt.Errorf("--envelope-strictness %q: want warn or strict", o.Strictness))
	}
	return errors.Join(append(errs, o.validateMedia(), o.validateLimits())...)
}

// maxLimit is the largest envelope limit.
const maxLimit = 1 << 20

func (o *Envelopes) validateLimits() error {
	var errs []error
	for flag, n := range map[string]int{
		"envelopes-per-turn": o.Limits.EnvelopesPerTurn, "schema-rounds": o.Limits.SchemaRounds, "clarification-rounds": o.Limits.ClarificationRounds,
	} {
		if n < 0 || n > maxLimit {
			errs = append(errs, fmt.Errorf("--limit-%s %d: want 0, which allows none, to %d", flag, n, maxLimit))
		}
	}
	return errors.Join(errs...)
}

func (o *Envelopes) validateMedia() error {
	var errs []error
	if o.MaxInlineBytes < 0 || o.MaxInlineBytes > accept.MaxPayloadBytes {
		errs = append(errs, fmt.Errorf("--max-inline-media-bytes %d: want 0 to %d", o.MaxInlineBytes, accept.MaxPayloadBytes))
	}
	if o.MaxMediaBytes < 1 || o.MaxMediaBytes > accept.DefaultMaxMediaBytes {
		errs = append(errs, fmt.Errorf("--max-media-base64-bytes %d: want 1 to %d", o.MaxMediaBytes, accept.DefaultMaxMediaBytes))
	}
	return errors.Join(errs...)
}

func (o *Envelopes) validateKinds() error {
	if st, err := os.Stat(o.Kinds); o.Kinds != "" && (err != nil || !st.IsDir()) {
		return fmt.Errorf("--kinds %q: give an existing directory", o.Kinds)
	}
	return nil
}

func (o *Envelopes) config() acceptor.Config {
	cfg := acceptor.DefaultConfig()
	cfg.Lint, cfg.Strictness = kinds.Lint(o.KindLint), acceptor.Strictness(o.Strictness)
	cfg.MaxInlineBytes, cfg.MaxMediaBytes = o.MaxInlineBytes, o.MaxMediaBytes
	cfg.Limits, cfg.TestSeams, cfg.NoAIEnvelope = o.Limits, o.TestSeams, !o.AIEnvelope
	return cfg
}

// newAcceptor creates the acceptor of a whole host, which also has the kinds of the examples.
func (c *core) newAcceptor(o *Envelopes, loaded []*pack.Pack, vault *assets.Store) (*acceptor.Service, error) {
	cfg := o.config()
	cfg.Packs = loaded
	var err error
	if cfg.KindsDir, err = packs.KindFiles(o.Kinds); err != nil {
		return nil, err
	}
	deps := acceptor.Deps{
		Log: c.runs(), Redactor: c.clients.Redactor, Clock: time.Now, Logger: c.log,
		Assets: vault, Seam: c.stores.Seams.State,
	}
	if c.spans != nil {
		deps.Spans = c.spans
	}
	s, err := acceptor.New(cfg, deps)
	return s, usageOfFiles(err)
}

// newVault creates the store of assets, which clients read under a base URL.
func (c *core) newVault(key Key, flags []string, baseURL func() string) (*assets.Store, error) {
	secret, err := key.secret()
	if err != nil {
		return nil, err
	}
	keys, err := assetKeys(flags, secret)
	if err != nil {
		return nil, err
	}
	return assets.New(c.stores.Assets, keys, func() string { return baseURL() + strings.TrimSuffix(rest.AssetsPrefix, "/") }, time.Now)
}

// usageOfFiles marks errors in files named by flags as usage errors.
func usageOfFiles(err error) error {
	_, unread := errors.AsType[*fs.PathError](err)
	if _, refused := fault.As(err); refused || unread {
		return exit.With(exit.Usage, err)
	}
	return err
}
