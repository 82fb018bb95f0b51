// Package workflowfolder lists the files of a folder of workflow definitions, and finds secrets in them.
package workflowfolder

import (
	"os"
	"path/filepath"
	"strings"
)

// Files lists the *.json files of a folder by name, without temporary ones.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !Temporary(name) && !isDir(dir, e) {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out, nil
}

// isDir reports whether an entry is a folder, or a link to one.
func isDir(dir string, e os.DirEntry) bool {
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return e.IsDir() || err == nil && info.IsDir()
}

// Temporary reports whether a name is that of a file that editors make while they save another one.
func Temporary(name string) bool {
	return strings.HasPrefix(name, ".") && name != "..data" || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swx") || name == "4913"
}
