// Package peer connects to the other services of a host with several processes.
package peer

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/rpc"
)

// Address is the address of another service, with its TLS settings. Calls carry secrets and a token,
// so they use TLS outside loopback, unless Plaintext is set for a network that is secured otherwise.
type Address struct {
	Addr string
	// CA is a PEM file of CAs; empty uses the system's.
	CA string
	// Cert and Key are files of this process's own certificate, for mutual TLS.
	Cert, Key string
	TokenFile string
	Plaintext bool
}

// tls reports whether connections use TLS.
func (p Address) tls() bool {
	return !p.Plaintext && (p.CA != "" || p.Cert != "" || p.Key != "" || slices.ContainsFunc(p.addrs(), func(a string) bool { return !OnLoopback(a) }))
}

// OnLoopback reports whether an address is on the loopback interface.
func OnLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// addrs returns the addresses of the list. A DNS name of several replicas counts as one.
func (p Address) addrs() []string { return strings.Split(p.Addr, ",") }

// check returns the error of an invalid address.
func (p Address) check() error {
	for _, addr := range p.addrs() {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || strings.ContainsAny(host, "/@") {
			return errors.New("want HOST:PORT, such as redactor.example:9092, or several, comma-separated") // not quoted: it may contain a password
		}
	}
	if (p.CA != "" || p.Cert != "") && p.Plaintext {
		return errors.New("certificates to check it by, and no TLS to check: give one of the two")
	}
	return nil
}

// resolveEvery is how often a DNS name is resolved again. A new replica gets no calls for that long,
// and callers may disagree on which redactor is a tenant's.
const resolveEvery = 30 * time.Second

// target is the gRPC target: a DNS name, or the addresses of a list.
func (p Address) target() (string, []grpc.DialOption) {
	addrs := p.addrs()
	if len(addrs) == 1 {
		return "dns:///" + p.Addr, []grpc.DialOption{grpc.WithResolvers(rpc.Lookups(resolveEvery))}
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

// Dial creates a connection without waiting for the peer. later is called with the function that
// stops reloading certificates.
func (p Address) Dial(later func(func()), more ...grpc.DialOption) (*grpc.ClientConn, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if p.tls() {
		certs, err := mtls.Load(mtls.Files{Cert: p.Cert, Key: p.Key, CA: p.CA}, mtls.Reread)
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
	if p.TokenFile != "" {
		token, err := p.bearer()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithPerRPCCredentials(token))
	}
	return grpc.NewClient(target, append(opts, more...)...)
}

// bearer is the peer's token.
func (p Address) bearer() (rpc.Bearer, error) {
	token, err := hostfile.ReadToken(p.TokenFile)
	return rpc.Bearer{Token: token, Clear: !p.tls()}, err
}
