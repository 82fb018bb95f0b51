package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/test/spread/link"
)

// services in the order of their dependencies.
var services = []string{"redactor", "acceptor", "eventlog", "dispatcher", "gateway"}

// host is the host started by the launcher.
type host struct {
	waybill string
	own     own
	nats    []string
	extra   map[string][]string
	copies  map[string]int
	// listen has the listen addresses of each service's processes, and at the addresses at which
	// others reach them.
	listen, at map[string][]string
	// http and grpc are the addresses for clients.
	http, grpc net.Listener
	// links are the links between the processes; nil if they are not cuttable.
	links *link.Net
	processes
}

func run(ctx context.Context, waybill, natsServer string, args []string) error {
	o, rest, err := parse(args)
	if err != nil {
		return err
	}
	h := &host{waybill: waybill, own: o, listen: map[string][]string{}, at: map[string][]string{}}
	h.dir, h.refused = o.dataDir, make(chan int, 1)
	if h.copies, err = copies(); err != nil {
		return err
	}
	flags := map[string]map[string]bool{}
	for _, s := range services {
		if flags[s], err = flagsOf(waybill, s); err != nil {
			return err
		}
	}
	if h.extra, err = share(flags, rest); err != nil {
		return err
	}
	defer h.stop()
	if err := h.prepare(); err != nil {
		return err
	}
	if os.Getenv(cuttable) != "" {
		h.links = link.New(h.owner)
		go h.obeyCuts(ctx)
	}
	if err := h.startNATS(natsServer); err != nil {
		return err
	}
	// The addresses come first, because URLs of assets contain one.
	lc := net.ListenConfig{}
	if h.http, err = lc.Listen(ctx, "tcp", o.httpAddr); err != nil {
		return err
	}
	if h.grpc, err = lc.Listen(ctx, "tcp", o.grpcAddr); err != nil {
		return err
	}
	defer func() { _, _ = h.http.Close(), h.grpc.Close() }()
	if err := h.startServices(); err != nil {
		return err
	}
	return h.serve(ctx)
}

// prepare creates the shared files of the services on the first start in a directory.
func (h *host) prepare() error {
	for _, dir := range []string{"", "kinds", "workflows"} {
		if err := os.MkdirAll(h.path(dir), 0o700); err != nil {
			return err
		}
	}
	if _, err := os.Stat(h.path("host.key")); err == nil {
		return nil
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	audit := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return errors.Join(
		os.WriteFile(h.path("host.key"), []byte(rand.Text()+rand.Text()), 0o600), os.WriteFile(h.path("audit.pem"), audit, 0o600), h.kinds(),
	)
}

func (h *host) path(name string) string { return filepath.Join(h.own.dataDir, name) }

// kinds copies the kinds of the examples and of the test into one folder, and the workflows of the
// examples into another. `waybill dev` embeds the examples.
func (h *host) kinds() error {
	copyOf := func(name string, b []byte, err error) error {
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(h.path("kinds"), path.Base(name)), b, 0o600)
	}
	err := fs.WalkDir(examples.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(examples.FS, name)
		switch {
		case path.Base(name) == "workflow.json":
			return errors.Join(err, os.WriteFile(filepath.Join(h.path("workflows"), path.Base(path.Dir(name))+".json"), b, 0o600))
		case strings.HasSuffix(name, ".schema.json"):
			return copyOf(name, b, err)
		}
		return err
	})
	if err != nil || h.own.kinds == "" {
		return err
	}
	files, err := filepath.Glob(filepath.Join(h.own.kinds, "*"))
	for _, f := range files {
		b, errRead := os.ReadFile(f)
		err = errors.Join(err, copyOf(f, b, errRead))
	}
	return err
}

// startServices starts all services in any order: each waits for its dependencies.
func (h *host) startServices() error {
	for _, s := range services {
		for i := range h.copies[s] {
			addr, err := free()
			if err != nil {
				return err
			}
			h.listen[s] = append(h.listen[s], addr)
			if addr, err = h.linked(fmt.Sprint(s, i), addr); err != nil {
				return err
			}
			h.at[s] = append(h.at[s], addr)
		}
	}
	for _, s := range services {
		for i := range h.copies[s] {
			if err := h.start(fmt.Sprint(s, i), h.waybill, h.args(s, i)...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *host) args(service string, i int) []string {
	a := append([]string{"serve", service, "--grpc-addr", h.listen[service][i], "--ready-file", h.ready(service, i)}, h.extra[service]...)
	peers := func(names ...string) {
		for _, n := range names {
			a = append(a, "--"+n, strings.Join(h.at[n], ","))
		}
	}
	if service != "redactor" {
		a = append(a, "--nats", strings.Join(h.nats, ","), "--log-replicas", strconv.Itoa(len(h.nats)))
	}
	switch service {
	case "acceptor":
		peers("redactor")
		a = append(a, "--kinds", h.path("kinds"), "--asset-key-file", h.path("host.key"))
		if !strings.Contains(strings.Join(a, " "), "--public-url") {
			a = append(a, "--public-url", "http://"+h.http.Addr().String())
		}
	case "eventlog":
		a = append(a, h.readModel(i)...)
	case "dispatcher":
		peers("redactor", "acceptor", "eventlog")
		a = append(a, "--host-key-file", h.path("host.key"), "--workflows", h.path("workflows"))
	case "gateway":
		peers("redactor", "acceptor", "eventlog", "dispatcher")
		http, err := free()
		if err == nil {
			h.at["http"] = append(h.at["http"], http)
		}
		a = append(a, "--http-addr", http, "--host-key-file", h.path("host.key"), "--audit-key-file", h.path("audit.pem"), "--public-grpc-addr", h.grpc.Addr().String())
		if !strings.Contains(strings.Join(a, " "), "--public-url") {
			a = append(a, "--public-url", "http://"+h.http.Addr().String())
		}
	}
	return a
}

func (h *host) ready(service string, i int) string { return h.path(fmt.Sprint(service, i, ".ready")) }

// serve waits until all are ready, then forwards connections until ctx ends.
func (h *host) serve(ctx context.Context) error {
	for _, s := range services {
		for i := range h.copies[s] {
			if err := h.await(ctx, h.ready(s, i)); err != nil {
				return err
			}
		}
	}
	go forward(h.http, h.at["http"])
	go forward(h.grpc, h.at["gateway"])
	doc, err := json.Marshal(map[string]any{
		"http": "http://" + h.http.Addr().String() + h.basePath(), "grpc": h.grpc.Addr().String(), "nats": strings.Join(h.nats, ","), "pid": os.Getpid(),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.own.readyFile+".new", doc, 0o600); err != nil {
		return err
	}
	if err := os.Rename(h.own.readyFile+".new", h.own.readyFile); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// basePath returns the value of --base-path.
func (h *host) basePath() string {
	for _, a := range h.extra["gateway"] {
		if path, is := strings.CutPrefix(a, "--base-path="); is {
			return "/" + strings.Trim(path, "/")
		}
	}
	return ""
}

func (h *host) await(ctx context.Context, file string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case status := <-h.refused:
			return statusError(status)
		case <-tick.C:
		}
	}
}

// statusError ends the launcher with the exit status of one of its processes.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("a service ended with status %d", int(e)) }
