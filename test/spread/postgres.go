package main

import (
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"

	"waybill.dev/waybill/internal/postgrestest"
)

// withPostgres is the command that runs another one with a PostgreSQL server.
const withPostgres = "with-postgres"

// urlFile is the variable with the path of a file with the URL of that server.
const urlFile = "SPREAD_POSTGRES"

// postgres runs a command with a new server.
func postgres(args []string) (status int, err error) {
	server, why := postgrestest.New()
	if server == nil {
		return 0, errors.New(why)
	}
	defer server.Remove()
	file := filepath.Join(server.Dir(), "url")
	if err := os.WriteFile(file, []byte(server.URL()), 0o600); err != nil {
		return 0, err
	}
	if err := os.Setenv(urlFile, file); err != nil {
		return 0, err
	}
	return passOn(args[0], args[1:]), nil
}

// readModel returns the arguments of an event log: each host has a schema of its own in the shared
// server.
func (h *host) readModel(i int) []string {
	file := os.Getenv(urlFile)
	if file == "" {
		return []string{"--data-dir", h.path("eventlog" + strconv.Itoa(i))}
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(h.own.dataDir))
	return []string{"--postgres-url-file", file, "--postgres-connections", "4", "--postgres-schema", "w" + strconv.FormatUint(sum.Sum64(), 36)}
}
