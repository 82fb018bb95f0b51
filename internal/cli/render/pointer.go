package render

// Pointer is a JSON pointer for display; the empty pointer is shown as nothing.
func Pointer(pointer string) string {
	if pointer == "" {
		return "(root)"
	}
	return pointer
}
