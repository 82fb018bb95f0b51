package hostfile

import (
	"fmt"
	"os"
	"strings"
)

// minToken is the minimum length of a token, against guessing.
const minToken = 16

// ReadToken reads a bearer token from a file.
func ReadToken(file string) (string, error) {
	b, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s: a token needs at least %d characters on one line, without spaces", file, minToken)
	}
	return token, nil
}
