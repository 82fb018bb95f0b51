// Package obs has the loggers of a process.
package obs

import (
	"fmt"
	"io"
	"log/slog"
)

// Log formats.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// NewLogger returns a logger that writes records of at least a level to w.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case FormatText:
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, fmt.Errorf("--log-format %q: want %s or %s", format, FormatText, FormatJSON)
	}
}
