"""What is retrieved is untrusted: whoever writes a document writes to the model that reads it."""
