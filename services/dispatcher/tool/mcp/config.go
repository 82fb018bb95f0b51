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

// Config describes a server.
type Config struct {
	// ID is its id in workflows.
	ID string
	// URL is the address of a streamable HTTP server; nil for a command.
	URL *url.URL
	// Command is the program and its arguments, for a server over standard input and output.
	Command []string
	// Env are further variables of the program, NAME=value.
	Env []string
	// Idempotent are the tools whose calls may be sent twice.
	Idempotent []string
	// Token is the bearer token of a URL; TokenName is the variable with it.
	Token, TokenName string
}

// Default timeouts.
const (
	connectTimeout = 30 * time.Second
	callTimeout    = time.Minute
)

const stdioPrefix = "stdio:"

// Parse reads ID=URL or ID=stdio:COMMAND ARGS. The command is split at spaces; no shell is used and
// no other character is special.
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
