package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// readTargets reads where a signal is sent.
func (s *Settings) readTargets(f Flags, v *variables, sig signal, exporters []string) []target {
	var out []target
	at := s.readTarget(f, v, sig) // also to check the variables of a signal that is not exported
	for _, name := range exporters {
		if name == "console" {
			out = append(out, target{signal: sig, console: true})
		} else {
			out = append(out, at)
		}
	}
	return out
}

// readTarget reads the OTLP exporter of a signal.
func (s *Settings) readTarget(f Flags, v *variables, sig signal) target {
	at := target{signal: sig, protocol: f.Protocol, timeout: sendTimeout}
	if name, value := v.of(sig, "PROTOCOL"); at.protocol == "" {
		if at.protocol = value; value == "" {
			at.protocol = HTTPProtobuf
		} else if !slices.Contains(Protocols(), value) {
			v.refuse(name, "%q: want %s", value, list(Protocols()))
			at.protocol = HTTPProtobuf
		}
	}
	s.readEndpoint(f, v, &at)
	if name, value := v.of(sig, "TIMEOUT"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxNumber {
			v.refuse(name, "%q: want milliseconds, an integer from 0 (no limit) to %d", value, maxNumber)
		}
		at.timeout = timeout(n)
	}
	switch name, value := v.of(sig, "COMPRESSION"); value {
	case "gzip":
		at.gzip = true
	case "", "none":
	default:
		v.refuse(name, "%q: want gzip or none", value)
	}
	at.headers = s.readHeaders(v, &at)
	return at
}

// readEndpoint reads the address of a collector, and whether it has TLS.
func (s *Settings) readEndpoint(f Flags, v *variables, at *target) {
	name, value := v.of(at.signal, "ENDPOINT")
	own := name != varExporterOTLP+"ENDPOINT" && value != ""
	label := "environment " + name
	refuse := func(format string, args ...any) { v.refuse(name, format, args...) }
	if f.Endpoint != "" {
		label, value, own = "--otlp-endpoint", f.Endpoint, false
		refuse = func(format string, args ...any) {
			v.errs = append(v.errs, fmt.Errorf(label+": "+format, args...))
		}
	}
	if value == "" {
		if value = "http://localhost:4318"; at.protocol == GRPC {
			value = "http://localhost:4317"
		}
	}
	insecureName, insecure := v.of(at.signal, "INSECURE")
	plain := v.boolean(insecureName) && insecure != ""
	if at.protocol == GRPC && isAddress(value) {
		if at.address = value; !plain {
			at.tls = readTLS(v, at.signal)
		}
		return
	}
	if at.protocol == GRPC && !strings.Contains(value, "://") { // HOST:PORT is valid for gRPC only
		scheme := "https://"
		if plain {
			scheme = "http://"
		}
		value = scheme + value
	}
	u, err := url.Parse(value)
	switch { // without the value, which may contain a password
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		refuse("must be a URL such as http://localhost:4318")
		return
	case u.User != nil:
		refuse("contains a user or password; send them as a header: %sHEADERS=Authorization=Basic%%20BASE64", varExporterOTLP)
		return
	case u.RawQuery != "" || u.Fragment != "":
		refuse("must be a URL without ? and #, such as http://localhost:4318")
		return
	}
	if err := checkPort(u); err != nil {
		refuse("%w", err)
		return
	}
	exported := !v.disabled && v.exported[at.signal]
	if exported && at.protocol != GRPC && u.Port() == "4317" {
		s.Warnings = append(s.Warnings, label+": port 4317 is the usual one of OTLP over gRPC, and the protocol is "+at.protocol+"; set --otlp-protocol grpc, or use port 4318")
	}
	if exported && at.protocol == GRPC && u.Port() == "4318" {
		s.Warnings = append(s.Warnings, label+": port 4318 is the usual one of OTLP over HTTP, and the protocol is grpc; set --otlp-protocol http/protobuf, or use port 4317")
	}
	if exported && at.protocol != GRPC {
		if w := warnOfPath(u.Path, at.signal, own); w != "" {
			s.Warnings = append(s.Warnings, label+": "+w)
		}
	}
	if u.Path == "" {
		u.Path = "/" // JoinPath would make a relative path
	}
	if !own {
		u = u.JoinPath(at.signal.path())
	}
	at.url = u
	at.tls = readTLS(v, at.signal)
	if u.Scheme == "http" {
		at.tls = nil
	}
}

// isAddress reports whether gRPC resolves an endpoint by itself: a name of DNS, or a socket of this
// machine.
func isAddress(endpoint string) bool {
	scheme, rest, _ := strings.Cut(endpoint, ":")
	if _, err := strconv.ParseUint(rest, 10, 16); err == nil {
		return false // a host of this name, and a port
	}
	return slices.Contains([]string{"dns", "unix", "unix-abstract"}, scheme)
}

// warnOfPath returns a warning of a path of an HTTP endpoint that a collector probably does not have.
// own is true for the endpoint of one signal.
func warnOfPath(path string, sig signal, own bool) string {
	path = strings.TrimSuffix(path, "/")
	switch {
	case own && path == "":
		return "the endpoint of a signal is used as it is; add " + sig.path() + " if the collector expects that"
	case !own && slices.ContainsFunc(signals, func(s signal) bool { return strings.HasSuffix(path, s.path()) }):
		return "the paths of the signals, such as " + traces.path() + ", are appended to this endpoint; give it without them"
	default:
		return ""
	}
}

func checkPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return errors.New("want a port from 1 to 65535")
	}
	return nil
}

// dialTarget is the address for gRPC.
func (t *target) dialTarget() string {
	if t.address != "" {
		return t.address
	}
	if t.url.Port() != "" {
		return t.url.Host
	}
	port := "443"
	if t.url.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(t.url.Hostname(), port)
}

// readHeaders reads the headers of requests to a collector. Their values count as secrets.
func (s *Settings) readHeaders(v *variables, at *target) map[string]string {
	name, value := v.of(at.signal, "HEADERS")
	out := map[string]string{}
	for i, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		raw := strings.TrimSpace(text)
		if !ok {
			raw = key // probably a part of a value that contains a comma
		}
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if !ok || err != nil || !at.canSend(key, text) {
			v.refuse(name, "header no. %d: want NAME=VALUE, with %%20 for a space and %%2C for a comma in a value%s", i+1, at.headerRule())
			s.Secrets = append(s.Secrets, raw) // the process starts if the signal is not exported
			continue
		}
		out[key] = text
		s.Secrets = append(s.Secrets, text)
		if _, token, ok := strings.Cut(text, " "); ok { // of an authorization scheme
			s.Secrets = append(s.Secrets, token)
		}
	}
	return out
}

// canSend reports whether the protocol has such a header. gRPC refuses a whole call for the sake of one.
func (t *target) canSend(name, value string) bool {
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		return false
	}
	return t.protocol != GRPC ||
		!strings.ContainsFunc(name, func(r rune) bool { return strings.ContainsRune("!#$%&'*+^`|~", r) }) &&
			!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

func (t *target) headerRule() string {
	if t.protocol == GRPC {
		return "; gRPC takes letters, digits, -, _ and . in names, and ASCII in values"
	}
	return ""
}

// readTLS reads the certificates of a signal.
func readTLS(v *variables, sig signal) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := v.of(sig, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
		c.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			v.refuse(name, "%w", err)
		case !c.RootCAs.AppendCertsFromPEM(pem):
			v.refuse(name, "%s: want a PEM file with certificates of CAs", file)
		}
	}
	certName, cert := v.of(sig, "CLIENT_CERTIFICATE")
	keyName, key := v.of(sig, "CLIENT_KEY")
	switch {
	case cert == "" && key == "":
	case cert == "":
		v.refuse(keyName, "belongs to %s; set both or neither", certName)
	case key == "":
		v.refuse(certName, "belongs to %s; set both or neither", keyName)
	default:
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			v.refuse(certName, "%w", err)
			break
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
