CREATE TABLE "root_keys" (
	"key_id" text NOT NULL,
	"version" integer NOT NULL,
	"wrapped_root" text NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "root_keys_key_id_version_pk" PRIMARY KEY("key_id","version"),
	CONSTRAINT "root_keys_version" CHECK ("root_keys"."version" >= 2)
);
--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "root_version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "oldest_root_version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "installation" ADD CONSTRAINT "installation_roots" CHECK ("installation"."oldest_root_version" between 1 and "installation"."root_version");