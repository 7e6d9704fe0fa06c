"""Sentence encoders: ONNX models, static embeddings, folders in the sentence-transformers layout, endpoints."""
