package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// Config names a server.
type Config struct {
	// ID is what workflows call it.
	ID string
	// URL is the address of a server that speaks streamable HTTP; nil for a command.
	URL *url.URL
	// Command is the program and its arguments of a server that speaks over its
	// standard input and output.
	Command []string
	// Env are the variables, NAME=value, that the program gets beside those that
	// every program needs.
	Env []string
	// Idempotent are the tools whose calls may be sent twice.
	Idempotent []string
	// Token is the bearer token of a URL; TokenName says where it is set.
	Token, TokenName string
}

// Timeouts of what a node does not bound itself.
const (
	connectTimeout = 30 * time.Second
	callTimeout    = time.Minute
)

const stdioPrefix = "stdio:"

// Parse reads ID=URL or ID=stdio:COMMAND ARGS. No shell sees the command: spaces
// divide it, and nothing in it has another meaning.
func Parse(flag string) (Config, error) {
	id, target, ok := strings.Cut(flag, "=")
	if !ok {
		return Config{}, errors.New("want ID=URL or ID=stdio:COMMAND ARGS")
	}
	c := Config{ID: id}
	if err := tool.CheckID(id); err != nil {
		return c, err
	}
	if command, ok := strings.CutPrefix(target, stdioPrefix); ok {
		if c.Command = strings.Fields(command); len(c.Command) == 0 {
			return c, fmt.Errorf("server %s: want a command after %s", id, stdioPrefix)
		}
		return c, nil
	}
	u, err := outbound.ParseBase(target)
	if err != nil {
		return c, fmt.Errorf("server %s: %w, or %sCOMMAND ARGS", id, err, stdioPrefix)
	}
	c.URL = u
	return c, nil
}
