CREATE TABLE "key_ring" (
	"key_id" text PRIMARY KEY NOT NULL,
	"wrapped_root" text NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
