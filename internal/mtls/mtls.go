// Package mtls provides TLS from files that are read again when they change, so that certificates
// can be rotated without a restart.
package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/tls/certprovider"
	"google.golang.org/grpc/credentials/tls/certprovider/pemfile"
	"google.golang.org/grpc/security/advancedtls"
)

// Reread is the interval of file checks. Open connections keep their certificates.
const Reread = time.Minute

// Files name PEM files; empty names are not used.
type Files struct {
	// Cert and Key are the own certificate, CA the certificates of trusted peers.
	Cert, Key, CA string
}

// check reads the files once. Errors are returned at the start; later changes with errors are
// ignored, and the old certificates stay in use.
func (f Files) check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("a certificate and its key belong together")
	}
	if f.Cert != "" {
		if _, err := tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
			return err
		}
	}
	if f.CA == "" {
		return nil
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no PEM certificate", f.CA)
	}
	return nil
}

// Certs are the certificates from files. Close stops reading the files.
type Certs struct {
	files    Files
	provider certprovider.Provider // nil without files
}

// Load reads files, and again after each interval.
func Load(f Files, every time.Duration) (*Certs, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c := &Certs{files: f}
	if f == (Files{}) {
		return c, nil
	}
	var err error
	c.provider, err = pemfile.NewProvider(pemfile.Options{
		CertFile:        f.Cert,
		KeyFile:         f.Key,
		RootFile:        f.CA,
		RefreshDuration: every,
	})
	return c, err
}

// Close stops reading the files.
func (c *Certs) Close() {
	if c.provider != nil {
		c.provider.Close()
	}
}

// Client returns a caller's TLS. It trusts the CA file, or the system's authorities without one.
// The own certificate is sent if the server requests it.
func (c *Certs) Client() (credentials.TransportCredentials, error) {
	o := advancedtls.Options{MinTLSVersion: tls.VersionTLS13, MaxTLSVersion: tls.VersionTLS13}
	if c.files.CA != "" {
		o.RootOptions.RootProvider = c.provider
	}
	if c.files.Cert != "" {
		o.IdentityOptions.IdentityProvider = c.provider
	}
	return advancedtls.NewClientCreds(&o)
}

// Server returns the TLS of a gRPC server. With a CA, callers need a certificate signed by it.
func (c *Certs) Server() (credentials.TransportCredentials, error) {
	o := advancedtls.Options{
		MinTLSVersion:    tls.VersionTLS13,
		MaxTLSVersion:    tls.VersionTLS13,
		VerificationType: advancedtls.CertVerification,
	}
	o.IdentityOptions.IdentityProvider = c.provider
	if c.files.CA != "" {
		o.RequireClientCert = true
		o.RootOptions.RootProvider = c.provider
	}
	return advancedtls.NewServerCreds(&o)
}

// Config returns the TLS of an HTTP server, without client certificates.
func (c *Certs) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			km, err := c.provider.KeyMaterial(hello.Context())
			if err != nil {
				return nil, err
			}
			return &km.Certs[0], nil
		},
	}
}
