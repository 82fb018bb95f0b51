package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// natsNodes is the variable with the number of NATS servers: 3 by default, or 1, which starts faster.
const natsNodes = "SPREAD_NATS_NODES"

const natsConfig = `server_name: %q
listen: %q
client_advertise: %q
max_payload: 8MB
jetstream { store_dir: %q, sync_interval: %s }
`

const natsCluster = `cluster { name: spread, listen: %q, advertise: %q, routes: [%s] }
`

// node is one NATS server: its address, and the address at which others reach it.
type node struct {
	name                               string
	listen, at, listenRoutes, atRoutes string
}

func (h *host) startNATS(server string) error {
	count := 3
	if v := os.Getenv(natsNodes); v != "" {
		var err error
		if count, err = strconv.Atoi(v); err != nil || count != 1 && count != 3 {
			return fmt.Errorf("%s=%s: want 1 or 3", natsNodes, v)
		}
	}
	nodes := make([]node, count)
	var routes []string
	for i := range nodes {
		n, err := h.node(fmt.Sprint("nats", i))
		if err != nil {
			return err
		}
		nodes[i] = n
		routes = append(routes, strconv.Quote("nats-route://"+n.atRoutes))
		h.nats = append(h.nats, "nats://"+n.at)
	}
	sync := "always"
	if h.own.durability != "sync" {
		sync = "2m"
	}
	for _, n := range nodes {
		conf := fmt.Appendf(nil, natsConfig, n.name, n.listen, n.at, h.path(n.name), sync)
		if count > 1 {
			conf = fmt.Appendf(conf, natsCluster, n.listenRoutes, n.atRoutes, strings.Join(routes, ", "))
		}
		file := h.path(n.name + ".conf")
		if err := os.WriteFile(file, conf, 0o600); err != nil {
			return err
		}
		if err := h.start(n.name, server, "-c", file); err != nil {
			return err
		}
	}
	return nil
}

// node reserves the addresses of a server.
func (h *host) node(name string) (n node, err error) {
	n.name = name
	if n.listen, err = free(); err != nil {
		return n, err
	}
	if n.listenRoutes, err = free(); err != nil {
		return n, err
	}
	if n.at, err = h.linked(name, n.listen); err != nil {
		return n, err
	}
	n.atRoutes, err = h.linked(name, n.listenRoutes)
	return n, err
}

// linked returns the address at which others reach a process that listens at an address.
func (h *host) linked(name, addr string) (string, error) {
	if h.links == nil {
		return addr, nil
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go h.links.Serve(lis, name, addr)
	return lis.Addr().String(), nil
}
