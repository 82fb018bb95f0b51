package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"waybill.dev/waybill/internal/rpc"
)

// peer is another service, and how it is reached. What is sent to it are texts
// with secrets in them and a token: they never cross a network in clear, unless
// the operator says that something else guards it.
type peer struct {
	addr string
	// ca names the file of who vouches for it; empty: those whom the system trusts.
	ca        string
	tokenFile string
	plaintext bool
}

// tls reports whether TLS is spoken to the peer.
func (p peer) tls() bool { return !p.plaintext && (p.ca != "" || !onLoopback(p.addr)) }

// onLoopback reports an address that no other machine can have.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// dial makes a connection; whether the peer is there shows with the first call.
func (p peer) dial(more ...grpc.DialOption) (*grpc.ClientConn, error) {
	host, port, err := net.SplitHostPort(p.addr)
	switch {
	case err != nil || host == "" || port == "" || strings.ContainsAny(host, "/@"):
		return nil, errors.New("want HOST:PORT, such as redactor.example:9092") // not repeated: it may hold a password
	case p.ca != "" && p.plaintext:
		return nil, errors.New("certificates to check it by, and no TLS to check: give one of the two")
	}
	creds := insecure.NewCredentials()
	if p.tls() {
		cfg := &tls.Config{MinVersion: tls.VersionTLS13}
		if cfg.RootCAs, err = roots(p.ca); err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(cfg)
	}
	opts := append(rpc.ClientOptions(), grpc.WithTransportCredentials(creds))
	if p.tokenFile != "" {
		token, err := p.bearer()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithPerRPCCredentials(token))
	}
	return grpc.NewClient(p.addr, append(opts, more...)...)
}

// roots are the certificates of a file; nil, those of the system, if there is none.
func roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// bearer is the peer's token.
func (p peer) bearer() (rpc.Bearer, error) {
	token, err := readToken(p.tokenFile)
	return rpc.Bearer{Token: token, Clear: !p.tls()}, err
}

// minToken is the shortest token that nobody guesses.
const minToken = 16

func readToken(file string) (string, error) {
	b, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s: a token needs at least %d characters on one line, without spaces", file, minToken)
	}
	return token, nil
}
