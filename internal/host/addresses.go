package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Addresses are the addresses of the host's APIs.
type Addresses struct {
	HTTP    string `json:"http"`
	GRPC    string `json:"grpc"`
	NATS    string `json:"nats,omitempty"`
	Metrics string `json:"metrics,omitempty"`
	// Console is its address, without a code.
	Console string `json:"console,omitempty"`
	PID     int    `json:"pid"`
	ReadyMs int64  `json:"readyMs"`
}

// Write writes the addresses to a file, atomically.
func (r Addresses) Write(file string) error {
	if file == "" {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("render ready file: %w", err)
	}
	tmp := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}
