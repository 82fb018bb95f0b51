package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"waybill.dev/waybill/internal/rpc"
)

// dial connects to another service: with TLS if ca names who vouches for it, with
// a token if there is one.
func dial(addr, ca, tokenFile string) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if ca != "" {
		pem, err := os.ReadFile(ca) //nolint:gosec // G304: the operator names the file
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", ca)
		}
		creds = credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})
	}
	opts := append(rpc.ClientOptions(), grpc.WithTransportCredentials(creds))
	if tokenFile != "" {
		token, err := readToken(tokenFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithPerRPCCredentials(rpc.Bearer{Token: token, Clear: ca == ""}))
	}
	return grpc.NewClient(addr, opts...)
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
