package host

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/gateway/rest"
)

// AssetOptions say where an acceptor that runs alone keeps images, sounds and
// files that are too large for the log.
type AssetOptions struct {
	PublicURL string
	keyFile   string
	keys      []string
	addr      string
	maxInline int
	maxMedia  int
}

func (o *AssetOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.PublicURL, "public-url", "", "URL at which clients reach what serves assets; their URLs begin with it; empty: none are kept, and large ones refused")
	f.StringVar(&o.keyFile, "asset-key-file", "", "file with the secret, of 32 bytes at least, that URLs of assets are signed with; the same for all that serve them; empty: host.key in --data-dir")
	f.StringArrayVar(&o.keys, "asset-keys", nil, "VERSION=KEY that signs URLs of assets, the same for all that serve them (repeatable); default 1=host, the key of --asset-key-file")
	f.StringVar(&o.addr, "assets-addr", "", "address where assets are served over HTTP, GET /v1/assets/{token}; empty: nowhere, others serve them")
	f.IntVar(&o.maxInline, "max-inline-media-bytes", accept.DefaultMaxInlineBytes, "largest image, sound or file that is recorded within its event")
	f.IntVar(&o.maxMedia, "max-media-base64-bytes", accept.DefaultMaxMediaBytes, "largest image, sound or file that is taken from a model, in characters of base64")
}

// validate returns all that is wrong, joined. embedded: the log is this process's
// own, and the key may be so as well.
func (o *AssetOptions) validate(embedded bool) error {
	var errs []error
	if u, err := url.Parse(o.PublicURL); err != nil || o.PublicURL != "" && (u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, errors.New("--public-url: want a URL such as https://waybill.example, without a user"))
	}
	if o.maxInline < 0 || o.maxInline > accept.MaxPayloadBytes {
		errs = append(errs, fmt.Errorf("--max-inline-media-bytes %d: want 0 to %d", o.maxInline, accept.MaxPayloadBytes))
	}
	if o.maxMedia < 1 || o.maxMedia > accept.DefaultMaxMediaBytes {
		errs = append(errs, fmt.Errorf("--max-media-base64-bytes %d: want 1 to %d", o.maxMedia, accept.DefaultMaxMediaBytes))
	}
	switch {
	case o.keyFile != "" && o.PublicURL == "":
		errs = append(errs, errors.New("--asset-key-file: signs URLs of assets, and there are none without --public-url"))
	case o.keyFile == "" && len(o.keys) == 0 && o.PublicURL != "" && !embedded:
		errs = append(errs, errors.New("--public-url: whoever serves assets there must know the key that signs their URLs; give it to --asset-key-file or --asset-keys"))
	}
	if _, _, err := net.SplitHostPort(o.addr); o.addr != "" && err != nil {
		errs = append(errs, fmt.Errorf("--assets-addr %q: want host:port, such as 127.0.0.1:8081", o.addr))
	}
	if o.addr != "" && o.PublicURL == "" {
		errs = append(errs, errors.New("--assets-addr: there are no assets without --public-url"))
	}
	if o.keyFile != "" {
		_, err := hostfile.ReadKey("--asset-key-file", o.keyFile)
		errs = append(errs, err)
	}
	if _, err := token.ParseKeys(o.keys, nil); err != nil {
		errs = append(errs, fmt.Errorf("--asset-keys: %w", err))
	}
	return errors.Join(errs...)
}

// vault makes the place of assets; nil when none are kept.
func (o *AssetOptions) vault(store blob.Store, dataDir string) (*assets.Vault, error) {
	if o.PublicURL == "" {
		return nil, nil
	}
	secret, err := o.secret(dataDir)
	if err != nil {
		return nil, err
	}
	key, err := assets.DeriveKey(secret)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(o.keys, key)
	if err != nil {
		return nil, fmt.Errorf("%w: --asset-keys: %w", exit.ErrUsage, err)
	}
	base := strings.TrimSuffix(o.PublicURL, "/") + strings.TrimSuffix(rest.AssetsPrefix, "/")
	return assets.New(store, keys, func() string { return base }, time.Now)
}

func (o *AssetOptions) secret(dataDir string) ([]byte, error) {
	if o.keyFile == "" {
		return hostfile.HostKey(dataDir)
	}
	return hostfile.ReadKey("--asset-key-file", o.keyFile)
}
