package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/rest"
)

// AssetServing configures the assets of a separate acceptor: images, sounds and files that are too
// large for the log.
type AssetServing struct {
	// PublicURL is the base of asset URLs for clients; empty disables assets.
	PublicURL string
	// KeyFile and Keys sign the URLs of assets.
	KeyFile string
	Keys    []string
	// Addr is the address at which this process serves assets; empty if another process serves them.
	Addr string
	// Admission and Callers limit what readers of assets may hold.
	Admission admission.Config
	Callers   Callers
}

func defaultAssetServing() AssetServing {
	return AssetServing{Admission: admission.DefaultConfig(), Callers: defaultCallers()}
}

// check returns all errors in the values, joined. maxMedia is the size of the largest asset.
func (o *AssetServing) check(maxMedia int) error {
	var errs []error
	if u, err := url.Parse(o.PublicURL); err != nil || o.PublicURL != "" && (u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, errors.New("--public-url: want a URL such as https://waybill.example, without a user"))
	}
	if o.KeyFile != "" && o.PublicURL == "" {
		errs = append(errs, errors.New("--asset-key-file: signs URLs of assets, and there are none without --public-url"))
	}
	errs = append(errs, checkListenAddr("assets-addr", o.Addr))
	if o.Addr != "" && o.PublicURL == "" {
		errs = append(errs, errors.New("--assets-addr: there are no assets without --public-url"))
	}
	if o.Addr != "" {
		errs = append(errs, o.validateCallers(int64(maxMedia)))
	}
	return errors.Join(append(errs, validateAssetKeys(o.Keys))...)
}

// validateKey returns all errors of the key that signs URLs, joined. embedded: the log is in this process,
// so the key may be in its data directory.
func (o *AssetServing) validateKey(embedded bool) error {
	if o.KeyFile == "" && len(o.Keys) == 0 && o.PublicURL != "" && !embedded {
		return errors.New("--public-url needs the key that signs asset URLs, shared with the server of the assets; set --asset-key-file or --asset-keys")
	}
	if o.KeyFile == "" {
		return nil
	}
	_, err := hostfile.ReadKey("--asset-key-file", o.KeyFile)
	return err
}

func (o *AssetServing) validateCallers(maxAsset int64) error {
	err := o.Admission.Validate()
	if err != nil {
		err = fmt.Errorf("--max-requests, --max-unknown-requests: %w", err)
	}
	return errors.Join(err, o.Callers.validate("--max-media-base64-bytes", maxAsset))
}

// vault creates the store of assets; nil if assets are disabled.
func (o *AssetServing) vault(store blob.Store, dataDir string, log *slog.Logger) (*assets.Store, error) {
	if o.PublicURL == "" {
		return nil, nil
	}
	secret, err := o.secret(dataDir, log)
	if err != nil {
		return nil, err
	}
	keys, err := assetKeys(o.Keys, secret)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(o.PublicURL, "/") + strings.TrimSuffix(rest.AssetsPrefix, "/")
	return assets.New(store, keys, func() string { return base }, time.Now)
}

func (o *AssetServing) secret(dataDir string, log *slog.Logger) ([]byte, error) {
	if o.KeyFile == "" {
		return hostfile.HostKey(dataDir, log)
	}
	return hostfile.ReadKey("--asset-key-file", o.KeyFile)
}
