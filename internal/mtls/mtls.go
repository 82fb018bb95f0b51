// Package mtls makes TLS of files that are read again when they change: certificates
// are rotated under services that go on.
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

// Reread is how often files are looked at. Connections that are open keep what they
// began with.
const Reread = time.Minute

// Files name PEM files; empty names are not used.
type Files struct {
	// Cert and Key are who we are, CA is who vouches for others.
	Cert, Key, CA string
}

// check reads the files once: what is wrong with them is told at the start, and later
// changes that cannot be used leave what there was.
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

// Certs are the certificates of files. Close ends the reading.
type Certs struct {
	files    Files
	provider certprovider.Provider // nil: there is no file
}

// Load reads files, and again whenever so much time has passed.
func Load(f Files, every time.Duration) (*Certs, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c := &Certs{files: f}
	if f == (Files{}) {
		return c, nil
	}
	var err error
	c.provider, err = pemfile.NewProvider(pemfile.Options{CertFile: f.Cert, KeyFile: f.Key, RootFile: f.CA, RefreshDuration: every})
	return c, err
}

// Close ends the reading of the files.
func (c *Certs) Close() {
	if c.provider != nil {
		c.provider.Close()
	}
}

// Client is the TLS of a caller: who vouches for the server is in the file, else those
// that the system trusts; who we are is told where the server asks.
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

// Server is the TLS of a gRPC server. With a CA, only callers for whom it vouches are
// heard.
func (c *Certs) Server() (credentials.TransportCredentials, error) {
	o := advancedtls.Options{MinTLSVersion: tls.VersionTLS13, MaxTLSVersion: tls.VersionTLS13, VerificationType: advancedtls.CertVerification}
	o.IdentityOptions.IdentityProvider = c.provider
	if c.files.CA != "" {
		o.RequireClientCert = true
		o.RootOptions.RootProvider = c.provider
	}
	return advancedtls.NewServerCreds(&o)
}

// Config is the TLS of an HTTP server, which hears everybody.
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
