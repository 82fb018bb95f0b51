// Command sbom prints the components of a Go binary as a CycloneDX document. It reads the linker's
// data in the binary, so the output depends only on that file and is reproducible.
//
//	sbom BINARY > BINARY.cdx.json
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"runtime/debug"
	"strings"

	"github.com/google/uuid"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one binary")
	}
	file, err := os.ReadFile(args[0]) //nolint:gosec // G304: the caller names the file
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(file))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(describe(info, sha256.Sum256(file)))
}

// document is the part of CycloneDX 1.6 that a binary has data for.
type document struct {
	Format   string `json:"bomFormat"`
	Version  string `json:"specVersion"`
	Serial   string `json:"serialNumber"`
	Revision int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// describe lists the modules of a binary and its Go version.
func describe(info *debug.BuildInfo, sum [sha256.Size]byte) document {
	d := document{Format: "CycloneDX", Version: "1.6", Revision: 1, Components: []component{}}
	// Derived from the file, so that one file has one document.
	d.Serial = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).String()
	d.Metadata.Component = component{
		Type: "application", Ref: info.Path, Name: path.Base(info.Path), Version: info.Main.Version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, s := range info.Settings {
		d.Metadata.Component.Properties = append(d.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
	}
	d.Components = append(d.Components, library("std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, library(m.Path, m.Version, m.Sum))
	}
	return d
}

// library is a module; sum is that of go.sum.
func library(name, version, sum string) component {
	purl := "pkg:golang/" + name + "@" + url.PathEscape(version)
	c := component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}
