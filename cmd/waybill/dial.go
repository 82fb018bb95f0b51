package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/rpc"
)

// peer is another service, and how it is reached. What is sent to it are texts
// with secrets in them and a token: they never cross a network in clear, unless
// the operator says that something else guards it.
type peer struct {
	addr string
	// ca names the file of who vouches for it; empty: those whom the system trusts.
	ca string
	// cert and key name the files of who we are, where it asks.
	cert, key string
	tokenFile string
	plaintext bool
}

// tls reports whether TLS is spoken to the peer.
func (p peer) tls() bool {
	return !p.plaintext && (p.ca != "" || p.cert != "" || p.key != "" || slices.ContainsFunc(p.addrs(), func(a string) bool { return !onLoopback(a) }))
}

// onLoopback reports an address that no other machine can have.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// addrs are the replicas that the operator names one by one; a name that stands for
// several is one of them.
func (p peer) addrs() []string { return strings.Split(p.addr, ",") }

// check tells what cannot be dialed.
func (p peer) check() error {
	for _, addr := range p.addrs() {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || strings.ContainsAny(host, "/@") {
			return errors.New("want HOST:PORT, such as redactor.example:9092, or several divided by commas") // not repeated: it may hold a password
		}
	}
	if (p.ca != "" || p.cert != "") && p.plaintext {
		return errors.New("certificates to check it by, and no TLS to check: give one of the two")
	}
	return nil
}

// lookEvery is how long a server that is added under a name may go without calls; and
// for so long callers may not agree on which of several redactors is a tenant's.
const lookEvery = 30 * time.Second

// target is what gRPC resolves: a name, again and again, or the addresses of a list.
func (p peer) target() (string, []grpc.DialOption) {
	addrs := p.addrs()
	if len(addrs) == 1 {
		return "dns:///" + p.addr, []grpc.DialOption{grpc.WithResolvers(rpc.Lookups(lookEvery))}
	}
	list := manual.NewBuilderWithScheme("list")
	var state resolver.State
	for _, a := range addrs {
		host, _, _ := net.SplitHostPort(a) // checked
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a, ServerName: host})
	}
	list.InitialState(state)
	return "list:///", []grpc.DialOption{grpc.WithResolvers(list)}
}

// dial makes a connection; whether the peer is there shows with the first call. later
// ends what reads its certificates.
func (p peer) dial(later func(func()), more ...grpc.DialOption) (*grpc.ClientConn, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if p.tls() {
		certs, err := mtls.Load(mtls.Files{Cert: p.cert, Key: p.key, CA: p.ca}, mtls.Reread)
		if err != nil {
			return nil, err
		}
		later(certs.Close)
		if creds, err = certs.Client(); err != nil {
			return nil, err
		}
	}
	target, opts := p.target()
	opts = append(append(opts, rpc.ClientOptions()...), grpc.WithTransportCredentials(creds))
	if p.tokenFile != "" {
		token, err := p.bearer()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithPerRPCCredentials(token))
	}
	return grpc.NewClient(target, append(opts, more...)...)
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
