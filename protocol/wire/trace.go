package wire

// ValidTraceparent checks the form of W3C Trace Context: version, trace id, parent
// id and flags in lower-case hex, neither id all zeros.
func ValidTraceparent(s string) bool {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return false
	}
	zeroTrace, zeroSpan := true, true
	for i := range len(s) {
		c := s[i]
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		if c != '0' && i > 2 && i < 35 {
			zeroTrace = false
		}
		if c != '0' && i > 35 && i < 52 {
			zeroSpan = false
		}
	}
	return !zeroTrace && !zeroSpan
}
