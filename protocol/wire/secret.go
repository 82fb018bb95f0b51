package wire

// MinSecretBytes is the length of the shortest secret that the redactor matches (OpenWOP envelope
// contract §11). A document without a longer text contains no secret.
const MinSecretBytes = 8
