package natsstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/cli/exit"
)

// Address is the address of the log's NATS servers, with the number of replicas.
type Address struct {
	// URL is the URL of a server, or several, comma-separated.
	URL string
	// Creds and NKey are credentials files; both may be empty.
	Creds, NKey string
	// CA, Cert and Key are the files of TLS.
	CA, Cert, Key string
	Replicas      int
	// InSync is the number of replicas in sync that readiness needs; 0 means a majority.
	InSync int
	// Monitors are the servers' monitoring URLs.
	Monitors []string
}

// DefaultAddress are the settings without flags.
func DefaultAddress() Address { return Address{Replicas: 1} }

// Validate returns all errors, joined.
func (o *Address) Validate() error {
	errs := []error{o.Check()}
	for _, f := range []struct{ flag, file string }{
		{"nats-creds", o.Creds}, {"nats-nkey", o.NKey}, {"nats-ca", o.CA}, {"nats-cert", o.Cert}, {"nats-key", o.Key},
	} {
		if _, err := os.ReadFile(f.file); f.file != "" && err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", f.flag, err))
		}
	}
	return errors.Join(errs...)
}

// Check returns all errors in the values, joined. It reads no files.
func (o *Address) Check() error {
	var errs []error
	if o.URL != "" {
		errs = append(errs, checkNATS(o.URL))
	}
	if o.Creds != "" && o.NKey != "" {
		errs = append(errs, errors.New("--nats-creds and --nats-nkey exclude each other; give one of them"))
	}
	if (o.Cert == "") != (o.Key == "") {
		errs = append(errs, errors.New("--nats-cert and --nats-key belong together; give both or neither"))
	}
	if o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5 {
		errs = append(errs, fmt.Errorf("--log-replicas %d: want 1, 3 or 5", o.Replicas))
	}
	if o.InSync < 0 || o.InSync > o.Replicas {
		errs = append(errs, fmt.Errorf("--log-in-sync %d: want 0 to %d, the number of copies", o.InSync, o.Replicas))
	}
	for i, m := range o.Monitors {
		if u, err := url.Parse(m); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			errs = append(errs, fmt.Errorf("--nats-monitor: URL no. %d cannot be used: want http://HOST:PORT, such as http://nats:8222", i+1))
		}
	}
	return errors.Join(errs...)
}

// Dial connects under a client name that the server's operator sees.
func (o *Address) Dial(name string, log *slog.Logger) (*nats.Conn, error) {
	opts := append(natsOptions(log), nats.Name("waybill "+name))
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		own, err := nats.NkeyOptionFromSeed(o.NKey)
		if err != nil {
			return nil, exit.Usagef("--nats-nkey: %w", err)
		}
		opts = append(opts, own)
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	return nats.Connect(o.URL, opts...)
}

// checkNATS checks the value of --nats: one URL, or several, comma-separated. A URL may contain a
// password, and an invalid one may contain it anywhere. So the error quotes neither the value nor the
// parser's reason.
func checkNATS(value string) error {
	urls := strings.Split(value, ",")
	for i, s := range urls {
		if natsURL(strings.TrimSpace(s)) {
			continue
		}
		which := "the URL"
		if len(urls) > 1 {
			which = fmt.Sprintf("URL no. %d", i+1)
		}
		return fmt.Errorf("--nats: %s cannot be used (it is not repeated here, as it may hold a password): want nats://HOST:PORT, such as nats://127.0.0.1:4222; "+
			"characters of a password that mean something in a URL are written as %%XX", which)
	}
	return nil
}

// natsURL reports whether the client can use a URL.
func natsURL(s string) bool {
	if !strings.Contains(s, "://") { // as the client reads it
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return false
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		return err == nil && n > 0
	}
	return true
}
